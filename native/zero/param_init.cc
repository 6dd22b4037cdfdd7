#include "zero/param_init.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "core/philox.h"

namespace zerofleet {
namespace {

/// log(x) for x > 0, to about 1e-16 of relative error: x = m · 2^e with m near 1, then the series of 2 artanh(s).
double natural_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < std::numbers::sqrt2 / 2) {
    m *= 2;
    --exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return 2 * s * series + exponent * std::numbers::ln2;
}

struct SinCos {
  double sin, cos;
};

/// Sine and cosine of `turns` full turns, 0 ≤ turns < 1: Taylor series within an eighth of a turn of a quarter.
SinCos sin_cos(double turns) {
  const double quarter = std::floor(turns * 4 + 0.5);
  const double x = (turns * 4 - quarter) * (std::numbers::pi / 2), x2 = x * x;
  double sin = 0, cos = 0;
  for (int k = 10; k >= 1; --k) {
    sin = (1 + sin) * (-x2 / (2 * k * (2 * k + 1)));
    cos = (1 + cos) * (-x2 / (2 * k * (2 * k - 1)));
  }
  sin = x * (1 + sin);
  cos = 1 + cos;
  switch (static_cast<int>(quarter) % 4) {
    case 0: return {sin, cos};
    case 1: return {cos, -sin};
    case 2: return {-sin, -cos};
    default: return {-cos, sin};
  }
}

/// Four independent standard normal numbers (Box and Muller, 1958) from one draw of the generator.
std::array<double, 4> normals(std::uint64_t seed, std::size_t param, std::int64_t group) {
  const auto low = static_cast<std::uint32_t>(group), high = static_cast<std::uint32_t>(group >> 32);
  const auto bits = philox(seed, {low, high, static_cast<std::uint32_t>(param), 0});
  std::array<double, 4> numbers{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const double radius = std::sqrt(-2 * natural_log(uniform_open(bits[pair])));
    const SinCos angle = sin_cos(uniform_open(bits[pair + 1]));
    numbers[pair] = radius * angle.cos;
    numbers[pair + 1] = radius * angle.sin;
  }
  return numbers;
}

}  // namespace

void init_param(const ParamSpec& spec, std::uint64_t seed, std::size_t param, std::int64_t begin,
                std::span<float> values) {
  if (spec.init != ParamInit::kNormal) {
    std::ranges::fill(values, spec.init == ParamInit::kOnes ? 1.0F : 0.0F);
    return;
  }
  const auto end = begin + static_cast<std::int64_t>(values.size());
  for (std::int64_t group = begin / 4; group * 4 < end; ++group) {
    const auto numbers = normals(seed, param, group);
    for (std::int64_t element = std::max(begin, group * 4); element < std::min(end, group * 4 + 4); ++element) {
      const double number = numbers[static_cast<std::size_t>(element % 4)];
      const double value = static_cast<double>(spec.init_std) * number;
      values[static_cast<std::size_t>(element - begin)] = static_cast<float>(value);
    }
  }
}

}  // namespace zerofleet
