#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/model_config.h"

namespace zerofleet {

/// Parts of a decoder that have parameters; job-document/model/parts.ts describes them.
enum class ModelPart : std::uint8_t {
  kEmbed,
  kPositions,
  kInputNorm,
  kQkv,
  kQuery,
  kKey,
  kValue,
  kQueryNorm,
  kKeyNorm,
  kOutput,
  kAttentionOutputNorm,
  kPostAttentionNorm,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedRouter,
  kRouter,
  kGate,
  kGateUp,
  kUp,
  kDown,
  kMlpOutputNorm,
  kNorm,
  kHead,
};

enum class PartKind : std::uint8_t {
  kEmbedding,  // (out, in)
  kNorm,       // (out)
  kLinear,     // (out, in), or (in, out) where weights are stored so
  kRouter,     // (out, in), never quantized
};

/// Parameters of a part: a weight, and a bias (out).
struct PartParams {
  ModelPart part;
  PartKind kind;
  std::string_view module;  // `{}` stands for the number of a layer, then of an expert
  std::int64_t in, out;     // 0 inputs: a norm
  bool has_bias;
  double init_std;  // of a matrix
  bool is_there;    // the model has the part

  bool per_layer() const { return module.find("{}") != std::string_view::npos; }
  bool per_expert() const { return module.find("{}") != module.rfind("{}"); }
  /// The name of one module.
  std::string module_of(int layer, int expert) const {
    std::string name(module);
    for (const int number : {layer, expert}) {
      const std::size_t at = name.find("{}");
      if (at != std::string::npos) name.replace(at, 2, std::to_string(number));
    }
    return name;
  }
};

/// The parts of a model in canonical order.
struct ModelParts {
  ModelParts(bool is_in_first, std::vector<PartParams> all) : in_first(is_in_first), parts(std::move(all)) {
    std::erase_if(parts, [](const PartParams& params) { return !params.is_there; });
  }

  bool has(ModelPart part) const {
    return std::ranges::any_of(parts, [&](const PartParams& params) { return params.part == part; });
  }

  bool in_first;  // weights are stored as (in, out)
  std::vector<PartParams> parts;
};

/// Throws Error{"invalid_model_config"} if no family names its parameters as `config.naming`.
ModelParts model_parts(const ModelConfig& config);

}  // namespace zerofleet
