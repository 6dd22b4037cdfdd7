#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/param_spec.h"
#include "model/config/model_config.h"

namespace zerofleet {

/// Positions of a norm's parameters in the canonical order; RMSNorm has no bias.
struct NormSpec {
  std::size_t weight = 0;
  std::optional<std::size_t> bias;
};

/// Positions of the factors of an adapter: (rank, in) and (out, rank); and of its magnitude, (out), with
/// AdapterType::kDora.
struct AdapterSpec {
  std::size_t down = 0, up = 0;
  std::optional<std::size_t> magnitude = {};
};

/// A weight matrix from `in` to `out` features, and its bias and its adapter where there are.
struct LinearSpec {
  std::size_t weight = 0;
  std::optional<std::size_t> bias;
  std::int64_t out = 0;
  std::optional<AdapterSpec> adapter = {};
  bool quantized = false;
};

/// Matrices that are multiplied with the same input, their outputs side by side.
using LinearSpecs = std::vector<LinearSpec>;

/// Positions of the norms of queries and keys.
struct QkNormSpec {
  std::size_t query = 0, key = 0;
};

/// Positions of one dense MLP, or of one expert.
struct DenseSpec {
  LinearSpecs inner;  // gate and up, both in one, or up alone
  LinearSpecs outer;  // down
};

/// Positions of an MLP. For an MLP with experts: the router's matrix and each expert's; dense is empty then. `shared`:
/// an expert of all tokens, and the matrix of its gate.
struct MlpSpec {
  DenseSpec dense;
  DenseSpec shared;
  LinearSpecs shared_router;
  LinearSpecs router;
  std::vector<DenseSpec> experts;
};

struct LayerSpec {
  std::optional<NormSpec> input_norm;
  LinearSpecs qkv;  // query, key, value, or all in one
  std::optional<QkNormSpec> qk_norm;
  LinearSpecs output;  // of attention
  std::optional<NormSpec> attention_output_norm;
  std::optional<NormSpec> post_attention_norm;  // before the MLP
  MlpSpec mlp;
  std::optional<NormSpec> mlp_output_norm;
};

/// Memory layout of matrices: (out, in), or (in, out) as in GPT-2's Conv1D, where every input has one matrix.
enum class WeightLayout : std::uint8_t { kOutIn, kInOut };

/// The parameters of a model, with Hugging Face names and shapes, in canonical order, which is about the order of the
/// forward; a bias follows its weight. Adapters are behind all others, so that they change no number. And where each
/// part of the model finds its own.
struct ParamTable {
  /// Throws Error{"invalid_model_config"}.
  explicit ParamTable(const ModelConfig& config);

  std::vector<ParamSpec> specs;
  WeightLayout layout = WeightLayout::kOutIn;
  std::size_t embed = 0;
  std::optional<std::size_t> positions;  // learned
  std::vector<LayerSpec> layers;
  NormSpec norm;
  std::size_t head = 0;  // the matrix of the output projection: the embedding's where they are tied
};

/// The parameters of a model in canonical order.
std::vector<ParamSpec> param_specs(const ModelConfig& config);

/// The matrices of a layer that inputs are multiplied with.
LinearSpecs matrices_of(const LayerSpec& layer);

}  // namespace zerofleet
