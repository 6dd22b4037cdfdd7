#pragma once

#include <cstddef>
#include <span>

#include "core/dtype.h"

namespace zerofleet {

/// Gradient values of one parameter, in memory of the compute device.
struct GradView {
  const std::byte* data = nullptr;
  DType dtype = DType::kF32;
  std::size_t numel = 0;

  static GradView of(std::span<const float> values) {
    return {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, values.size()};
  }
  std::span<const std::byte> bytes() const { return {data, numel * size_of(dtype)}; }
};

}  // namespace zerofleet
