#include "kernels/attention/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>

#include "core/error.h"
#include "core/portable_math.h"

namespace zerofleet {
namespace {

/// A number that transformers rounds to fp32 because it meets a tensor of fp32.
float f32(double value) { return static_cast<float>(value); }

constexpr double kTwoPi = 6.28318530717958647693;

/// theta^(2i / rotary_dim), the exponent and the result rounded to fp32.
std::vector<float> powers(std::int64_t rotary_dim, double theta) {
  const double log_theta = portable::log(theta);
  std::vector<float> result;
  for (std::int64_t i = 0; i < rotary_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
    result.push_back(f32(portable::exp(static_cast<double>(exponent) * log_theta)));
  }
  return result;
}

/// Keeps wavelengths below length / high_freq_factor, and multiplies those above length / low_freq_factor by `factor`.
/// Between these limits the frequency is interpolated by its number of turns over the first training's length.
float llama3_frequency(float frequency, const RopeScaling& scaling) {
  const auto length = static_cast<double>(scaling.original_max_position_embeddings);
  const float wavelength = f32(kTwoPi) / frequency, factor = f32(scaling.factor);
  if (wavelength > f32(length / scaling.low_freq_factor)) return frequency / factor;
  if (wavelength < f32(length / scaling.high_freq_factor)) return frequency;
  const float smooth = (f32(length) / wavelength - f32(scaling.low_freq_factor)) /
                       f32(scaling.high_freq_factor - scaling.low_freq_factor);
  return (1.0F - smooth) * frequency / factor + smooth * frequency;
}

/// The pair of dimensions, as a fraction, whose wave turns `turns` times over the first training's length.
double yarn_dimension(double turns, std::int64_t rotary_dim, double theta, const RopeScaling& scaling) {
  const double length = static_cast<double>(scaling.original_max_position_embeddings) / (turns * kTwoPi);
  return static_cast<double>(rotary_dim) * portable::log(length) / (2 * portable::log(theta));
}

double whole(double value, bool up) {
  const auto truncated = static_cast<double>(static_cast<std::int64_t>(value));
  if (up) return truncated < value ? truncated + 1 : truncated;
  return truncated > value ? truncated - 1 : truncated;
}

/// Pairs before the ramp keep their frequency, those after it are stretched by `factor`.
std::vector<float> yarn_frequencies(const std::vector<float>& powers_of_theta, double theta,
                                    const RopeScaling& scaling) {
  const std::int64_t half = std::ssize(powers_of_theta), rotary_dim = 2 * half;
  double low = yarn_dimension(scaling.beta_fast, rotary_dim, theta, scaling);
  double high = yarn_dimension(scaling.beta_slow, rotary_dim, theta, scaling);
  if (scaling.truncate) {
    low = whole(low, false);
    high = whole(high, true);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(rotary_dim - 1));
  if (low == high) high += 0.001;
  std::vector<float> radians;
  for (std::int64_t i = 0; i < half; ++i) {
    const float power = powers_of_theta[static_cast<std::size_t>(i)];
    const float ramp = std::clamp((static_cast<float>(i) - f32(low)) / f32(high - low), 0.0F, 1.0F);
    const float kept = 1.0F - ramp, stretched = 1.0F / (f32(scaling.factor) * power);
    radians.push_back(stretched * (1.0F - kept) + 1.0F / power * kept);
  }
  return radians;
}

/// Same as transformers' _compute_yarn_parameters().
double yarn_attention_factor(const RopeScaling& scaling) {
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  const auto scaled = [&](double by) { return 0.1 * by * portable::log(scaling.factor) + 1; };
  if (scaling.mscale > 0 && scaling.mscale_all_dim > 0) return scaled(scaling.mscale) / scaled(scaling.mscale_all_dim);
  return scaled(1);
}

std::vector<float> longrope_frequencies(const std::vector<float>& powers_of_theta, const std::vector<double>& factors) {
  std::vector<float> radians;
  for (std::size_t i = 0; i < powers_of_theta.size(); ++i)
    radians.push_back(1.0F / (f32(factors[i]) * powers_of_theta[i]));
  return radians;
}

/// Same as transformers' _compute_longrope_parameters().
double longrope_attention_factor(const RopeScaling& scaling) {
  if (scaling.attention_factor > 0) return scaling.attention_factor;
  if (scaling.factor <= 1) return 1;
  const auto length = static_cast<double>(scaling.original_max_position_embeddings);
  return std::sqrt(1 + portable::log(scaling.factor) / portable::log(length));
}

void check(std::int64_t rotary_dim, double theta, const RopeScaling& scaling) {
  require(rotary_dim >= 2 && rotary_dim % 2 == 0 && theta > 1, "invalid_argument",
          "rope: needs an even number of rotated elements and theta above 1");
  if (scaling.type == RopeScalingType::kNone) return;
  require(scaling.factor >= 1, "invalid_argument", "rope scaling: factor must be at least 1");
  if (scaling.type == RopeScalingType::kLinear) return;
  require(scaling.original_max_position_embeddings >= 1, "invalid_argument",
          "rope scaling: needs original_max_position_embeddings, the length before it was stretched");
  if (scaling.type == RopeScalingType::kLlama3) {
    require(scaling.low_freq_factor > 0 && scaling.high_freq_factor > scaling.low_freq_factor, "invalid_argument",
            "rope scaling: high_freq_factor must be above low_freq_factor, and that above 0");
    return;
  }
  if (scaling.type == RopeScalingType::kLongrope) {
    const auto fits = [&](const std::vector<double>& factors) {
      return 2 * std::ssize(factors) == rotary_dim &&
             std::ranges::all_of(factors, [](double value) { return value > 0; });
    };
    require(fits(scaling.short_factor) && fits(scaling.long_factor), "invalid_argument",
            "rope scaling: short_factor and long_factor need a positive number for each pair of rotated elements");
    require(scaling.original_max_position_embeddings >= 2 && scaling.attention_factor >= 0, "invalid_argument",
            "rope scaling: original_max_position_embeddings must be at least 2, and attention_factor not below 0");
    return;
  }
  require(scaling.beta_slow > 0 && scaling.beta_fast >= scaling.beta_slow, "invalid_argument",
          "rope scaling: beta_fast must be at least beta_slow, and that above 0");
  require(scaling.attention_factor >= 0 && scaling.mscale >= 0 && scaling.mscale_all_dim >= 0, "invalid_argument",
          "rope scaling: attention_factor, mscale and mscale_all_dim must not be below 0");
}

}  // namespace

RopeFrequencies rope_frequencies(std::int64_t rotary_dim, double theta, const RopeScaling& scaling,
                                 std::int64_t length) {
  check(rotary_dim, theta, scaling);
  RopeFrequencies result{powers(rotary_dim, theta)};
  if (scaling.type == RopeScalingType::kLongrope) {
    const std::vector<double>& factors = scaling.is_long(length) ? scaling.long_factor : scaling.short_factor;
    return {longrope_frequencies(result.radians, factors), f32(longrope_attention_factor(scaling))};
  }
  if (scaling.type == RopeScalingType::kYarn) {
    result.radians = yarn_frequencies(result.radians, theta, scaling);
    result.attention_factor = f32(yarn_attention_factor(scaling));
    return result;
  }
  for (float& value : result.radians) {
    value = 1.0F / value;
    if (scaling.type == RopeScalingType::kLinear) value /= f32(scaling.factor);
    if (scaling.type == RopeScalingType::kLlama3) value = llama3_frequency(value, scaling);
  }
  return result;
}

}  // namespace zerofleet
