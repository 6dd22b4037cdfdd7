#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <vector>

#include "core/dtype.h"
#include "test/all_dtypes.h"

namespace zerofleet::test {

/// `value` rounded to `dtype` and widened again, by the scalar code of core/dtype.h.
inline float rounded(float value, DType dtype) {
  switch (dtype) {
    case DType::kBF16:
      return to_float(to_bf16(value));
    case DType::kF16:
      return to_float(to_f16(value));
    case DType::kF32:
      break;
  }
  return value;
}

/// The values as an array of `dtype`.
inline std::vector<std::byte> stored(std::span<const float> values, DType dtype) {
  std::vector<std::byte> bytes(values.size() * size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::byte* target = bytes.data() + i * size_of(dtype);
    if (dtype == DType::kF32) {
      std::memcpy(target, &values[i], 4);
    } else {
      const std::uint16_t bits = dtype == DType::kBF16 ? to_bf16(values[i]).bits : to_f16(values[i]).bits;
      std::memcpy(target, &bits, 2);
    }
  }
  return bytes;
}

/// An array of `dtype` as fp32.
inline std::vector<float> widened(std::span<const std::byte> bytes, DType dtype) {
  std::vector<float> values(bytes.size() / size_of(dtype));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::byte* source = bytes.data() + i * size_of(dtype);
    if (dtype == DType::kF32) {
      std::memcpy(&values[i], source, 4);
    } else {
      std::uint16_t bits = 0;
      std::memcpy(&bits, source, 2);
      values[i] = dtype == DType::kBF16 ? to_float(bf16{bits}) : to_float(f16{bits});
    }
  }
  return values;
}

}  // namespace zerofleet::test
