#pragma once

#include <cstdint>
#include <vector>

namespace zerofleet {

/// Scaling of rotary frequencies, which extends a model's context beyond that of its first training. The rules are
/// those of transformers' ROPE_INIT_FUNCTIONS, rounded to fp32 where they round.
enum class RopeScalingType : std::uint8_t { kNone, kLinear, kLlama3, kYarn };

struct RopeScaling {
  RopeScalingType type = RopeScalingType::kNone;
  double factor = 1;                                  // how much further; all types
  double low_freq_factor = 1, high_freq_factor = 4;   // llama3: wavelengths, as parts of the first training's length
  std::int64_t original_max_position_embeddings = 0;  // llama3, yarn: positions of the first training
  double beta_fast = 32, beta_slow = 1;               // yarn: turns over the first training's length
  /// yarn: factor of cos and sin. 0: s(mscale) / s(mscale_all_dim) where both are above 0, else s(1), with s(m) =
  /// 0.1 · m · ln(factor) + 1.
  double attention_factor = 0;
  double mscale = 0, mscale_all_dim = 0;
  bool truncate = true;                               // yarn: round the ends of the ramp to whole dimensions
};

struct RopeFrequencies {
  std::vector<float> radians;  // (head_dim / 2) angle per position of each pair
  float attention_factor = 1;  // factor of cos and sin
};

/// theta^(-2i / head_dim), scaled. Computed by core/portable_math.h: the same bits on every machine.
/// Throws Error{"invalid_argument"} for an odd head_dim, theta up to 1, or a scaling without sense.
RopeFrequencies rope_frequencies(std::int64_t head_dim, double theta, const RopeScaling& scaling);

}  // namespace zerofleet
