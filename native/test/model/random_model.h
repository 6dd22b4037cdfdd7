#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "model/common/block.h"
#include "model/transformer/transformer.h"
#include "test/model/quantized_params.h"
#include "test/shared_bytes.h"

namespace zerofleet::test {

/// A model on any device with random parameters of its own, one batch for it, and a key for its dropout.
class RandomModel {
 public:
  RandomModel(const Context& ctx, const ModelConfig& config, DType dtype, const TransformerOptions& options = {},
              const PassShape& shape = {2, 19});

  struct Gradients {
    LeafResult result;
    std::vector<std::vector<float>> gradients;  // each parameter
    std::vector<std::size_t> order;             // in which they came
    bool operator==(const Gradients& other) const {
      return result.loss_sum == other.result.loss_sum && gradients == other.gradients && order == other.order;
    }
  };
  Gradients gradients(LeafKey key = {7, 3, 1});
  /// The parameters; fp32 only.
  std::vector<std::vector<float>> values() const;
  void set(const std::vector<std::vector<float>>& values);
  /// p += factor · direction; fp32 only.
  void move(const std::vector<std::vector<float>>& direction, double factor);

  const std::vector<ParamSpec>& specs() const { return specs_; }
  LeafInput leaf(LeafKey key) const { return {tokens, targets, key, document_starts, lengths}; }
  Transformer& model() { return model_; }
  std::span<const std::byte* const> params() const { return pointers_; }

  std::vector<std::int32_t> tokens, targets, document_starts, lengths;

 private:
  Context ctx_;
  std::vector<ParamSpec> specs_;
  std::vector<SharedBytes> params_;
  std::vector<const std::byte*> pointers_;
  QuantizedParams quantized_;
  Transformer model_;
};

}  // namespace zerofleet::test
