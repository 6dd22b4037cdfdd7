#pragma once

#include <cstddef>

#include "model/model_config.h"

namespace zerofleet {

/// Where each parameter stands in the canonical order of param_specs().
struct LayerParamIndex {
  std::size_t input_norm, q, k, v, o, post_attention_norm, gate, up, down;
};

class ParamIndex {
 public:
  explicit ParamIndex(const ModelConfig& config)
      : num_layers_(static_cast<std::size_t>(config.num_hidden_layers)), tied_(config.tie_word_embeddings) {}

  std::size_t embed() const { return 0; }
  LayerParamIndex layer(std::size_t layer) const {
    const std::size_t first = 1 + 9 * layer;
    return {first, first + 1, first + 2, first + 3, first + 4, first + 5, first + 6, first + 7, first + 8};
  }
  std::size_t norm() const { return 1 + 9 * num_layers_; }
  /// The matrix of the output projection: the embedding's where they are tied.
  std::size_t head() const { return tied_ ? embed() : norm() + 1; }
  std::size_t size() const { return norm() + (tied_ ? 1 : 2); }

 private:
  std::size_t num_layers_;
  bool tied_;
};

}  // namespace zerofleet
