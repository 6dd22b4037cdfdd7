#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/param_spec.h"
#include "model/config/model_config.h"

namespace zerofleet {

/// Positions of a norm's parameters in the canonical order; RMSNorm has no bias.
struct NormPlace {
  std::size_t weight = 0;
  std::optional<std::size_t> bias;
};

/// Positions of the factors of an adapter: (rank, in) and (out, rank); and of its magnitude, (out), with
/// AdapterType::kDora.
struct AdapterPlace {
  std::size_t down = 0, up = 0;
  std::optional<std::size_t> magnitude = {};
};

/// A weight matrix from `in` to `out` features, and its bias and its adapter where there are.
struct LinearPlace {
  std::size_t weight = 0;
  std::optional<std::size_t> bias;
  std::int64_t out = 0;
  std::optional<AdapterPlace> adapter = {};
  bool quantized = false;
};

/// Matrices that are multiplied with the same input, their outputs side by side.
using LinearPlaces = std::vector<LinearPlace>;

/// Positions of the norms of queries and keys.
struct QkNormPlace {
  std::size_t query = 0, key = 0;
};

/// Positions of one dense MLP, or of one expert.
struct DensePlace {
  LinearPlaces inner;  // gate and up, or GPT-2's one
  LinearPlaces outer;  // down
};

/// Positions of an MLP. For an MLP with experts: the router's matrix and each expert's; dense is empty then.
struct MlpPlace {
  DensePlace dense;
  LinearPlaces router;
  std::vector<DensePlace> experts;
};

struct LayerPlace {
  std::optional<NormPlace> input_norm;
  LinearPlaces qkv;  // query, key, value, or all in one
  std::optional<QkNormPlace> qk_norm;
  LinearPlaces output;  // of attention
  std::optional<NormPlace> attention_output_norm;
  std::optional<NormPlace> post_attention_norm;  // before the MLP
  MlpPlace mlp;
  std::optional<NormPlace> mlp_output_norm;
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
  std::vector<LayerPlace> layers;
  NormPlace norm;
  std::size_t head = 0;  // the matrix of the output projection: the embedding's where they are tied
};

/// The parameters of a model in canonical order.
std::vector<ParamSpec> param_specs(const ModelConfig& config);

/// The matrices of a layer that inputs are multiplied with.
LinearPlaces matrices_of(const LayerPlace& layer);

}  // namespace zerofleet
