#include "zero/partition/param_init.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/philox.h"
#include "core/portable_math.h"

namespace zerofleet {
namespace {

using Draw = std::array<std::uint32_t, 4>;

/// Four independent standard normal numbers (Box and Muller, 1958) from one draw of the generator.
std::array<double, 4> normals(const Draw& bits) {
  std::array<double, 4> numbers{};
  for (std::size_t pair = 0; pair < 4; pair += 2) {
    const double radius = std::sqrt(-2 * portable::log(uniform_open(bits[pair])));
    const portable::SinCos angle = portable::sin_cos_of_turns(uniform_open(bits[pair + 1]));
    numbers[pair] = radius * angle.cos;
    numbers[pair + 1] = radius * angle.sin;
  }
  return numbers;
}

/// Four independent uniform numbers in (−1, 1).
std::array<double, 4> uniforms(const Draw& bits) {
  std::array<double, 4> numbers{};
  for (std::size_t i = 0; i < 4; ++i) numbers[i] = 2 * uniform_open(bits[i]) - 1;
  return numbers;
}

}  // namespace

void init_param(const ParamSpec& spec, std::uint64_t seed, std::size_t param, std::int64_t begin,
                std::span<float> values) {
  if (spec.init != ParamInit::kNormal && spec.init != ParamInit::kUniform) {
    std::ranges::fill(values, spec.init == ParamInit::kOnes ? 1.0F : 0.0F);
    return;
  }
  const auto end = begin + static_cast<std::int64_t>(values.size());
  for (std::int64_t group = begin / 4; group * 4 < end; ++group) {
    const auto low = static_cast<std::uint32_t>(group), high = static_cast<std::uint32_t>(group >> 32);
    const Draw bits = philox(seed, {low, high, static_cast<std::uint32_t>(param), 0});
    const auto numbers = spec.init == ParamInit::kNormal ? normals(bits) : uniforms(bits);
    for (std::int64_t element = std::max(begin, group * 4); element < std::min(end, group * 4 + 4); ++element) {
      const double number = numbers[static_cast<std::size_t>(element % 4)];
      const double value = static_cast<double>(spec.init_scale) * number;
      values[static_cast<std::size_t>(element - begin)] = static_cast<float>(value);
    }
  }
}

}  // namespace zerofleet
