#pragma once

#include <cstdint>
#include <vector>

namespace zerofleet {

/// Scaling of rotary frequencies, which extends a model's context beyond that of its first training. The rules are
/// those of transformers' ROPE_INIT_FUNCTIONS, rounded to fp32 where they round.
enum class RopeScalingType : std::uint8_t { kNone, kLinear, kLlama3, kYarn, kLongrope };

struct RopeScaling {
  RopeScalingType type = RopeScalingType::kNone;
  double factor = 1;                                  // how much further; all types
  double low_freq_factor = 1, high_freq_factor = 4;   // llama3: wavelengths, as parts of the first training's length
  std::int64_t original_max_position_embeddings = 0;  // not linear: positions of the first training
  double beta_fast = 32, beta_slow = 1;               // yarn: turns over the first training's length
  /// yarn: factor of cos and sin. 0: s(mscale) / s(mscale_all_dim) where both are above 0, else s(1), with s(m) =
  /// 0.1 · m · ln(factor) + 1.
  double attention_factor = 0;
  double mscale = 0, mscale_all_dim = 0;
  bool truncate = true;  // yarn: round the ends of the ramp to whole dimensions

  /// longrope: (rotary_dim / 2) divisors of the frequencies. short_factor is for sequences within the first training's
  /// length, long_factor for longer ones. attention_factor 0 is sqrt(1 + ln(factor) / ln(original length)).
  std::vector<double> short_factor = {}, long_factor = {};

  /// longrope: whether a sequence of `length` tokens has long_factor. All its positions have the same factors.
  bool is_long(std::int64_t length) const {
    return type == RopeScalingType::kLongrope && length > original_max_position_embeddings;
  }

  template <class Fields>
  void fields(Fields& field) {
    field("type", type,
          {{"none", RopeScalingType::kNone},
           {"linear", RopeScalingType::kLinear},
           {"llama3", RopeScalingType::kLlama3},
           {"yarn", RopeScalingType::kYarn},
           {"longrope", RopeScalingType::kLongrope}});
    field("factor", factor);
    field("low_freq_factor", low_freq_factor);
    field("high_freq_factor", high_freq_factor);
    field("original_max_position_embeddings", original_max_position_embeddings);
    field("beta_fast", beta_fast);
    field("beta_slow", beta_slow);
    field("attention_factor", attention_factor);
    field("mscale", mscale);
    field("mscale_all_dim", mscale_all_dim);
    field("truncate", truncate);
    field("short_factor", short_factor);
    field("long_factor", long_factor);
  }
};

struct RopeFrequencies {
  std::vector<float> radians;  // (rotary_dim / 2) angle per position of each pair
  float attention_factor = 1;  // factor of cos and sin
};

/// theta^(-2i / rotary_dim), scaled for sequences of `length` tokens. Computed by core/portable_math.h: the same bits
/// on every machine. Throws Error{"invalid_argument"} for an odd rotary_dim, theta up to 1, or a scaling without sense.
RopeFrequencies rope_frequencies(std::int64_t rotary_dim, double theta, const RopeScaling& scaling,
                                 std::int64_t length = 0);

}  // namespace zerofleet
