#pragma once

#include <cmath>

#include "kernels/elementwise/gelu.h"

namespace zerofleet::test {

inline constexpr double kPi = 3.14159265358979323846;

inline constexpr GeluKind kGeluKinds[] = {GeluKind::kExact, GeluKind::kTanh};

inline double gelu_of(GeluKind kind, double x) {
  if (kind == GeluKind::kExact) return x / 2 * std::erfc(-x / std::sqrt(2.0));
  return x / 2 * (1 + std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x)));
}

inline double gelu_slope_of(GeluKind kind, double x) {
  if (kind == GeluKind::kExact)
    return std::erfc(-x / std::sqrt(2.0)) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * kPi);
  const double t = std::tanh(std::sqrt(2 / kPi) * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * std::sqrt(2 / kPi) * (1 + 3 * 0.044715 * x * x);
}

}  // namespace zerofleet::test
