#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/dtype_enum.h"

namespace zerofleet {

constexpr std::size_t size_of(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

constexpr const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "fp32";
    case DType::kBF16:
      return "bf16";
    case DType::kF16:
      return "fp16";
  }
  return "";
}

/// bfloat16 as storage: the upper half of an IEEE-754 binary32.
struct bf16 {
  std::uint16_t bits;
};
static_assert(sizeof(bf16) == 2);

constexpr float to_float(bf16 value) { return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16); }

/// Round to nearest, ties to even. NaN stays a (quiet) NaN; a finite float beyond the bf16 range becomes infinity.
constexpr bf16 to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return bf16{static_cast<std::uint16_t>((bits >> 16) | 0x0040U)};
  return bf16{static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

/// IEEE-754 binary16 as storage.
struct f16 {
  std::uint16_t bits;
};
static_assert(sizeof(f16) == 2);

/// Exact; NaN becomes a quiet NaN.
constexpr float to_float(f16 value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t magnitude = value.bits & 0x7fffU;
  if (magnitude >= 0x7c00U) {  // infinity or NaN
    const std::uint32_t quiet = magnitude > 0x7c00U ? 0x400000U : 0U;
    return std::bit_cast<float>(sign | 0x7f800000U | quiet | ((magnitude & 0x3ffU) << 13));
  }
  if (magnitude < 0x400U) {  // zero or subnormal: a multiple of 2^-24
    const float unit = static_cast<float>(magnitude) * 0x1p-24F;
    return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(unit));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
}

/// Round to nearest, ties to even; subnormals are kept. NaN stays a (quiet) NaN; beyond the range it becomes infinity.
constexpr f16 to_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) {
    return f16{static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU))};
  }
  if (magnitude >= 0x477ff000U) return f16{static_cast<std::uint16_t>(sign | 0x7c00U)};  // 65520 and above
  if (magnitude < 0x38800000U) {
    // Below 2^-14. Adding 0.5 puts the last place at 2^-24, so the addition itself rounds to a multiple of it.
    const float sum = std::bit_cast<float>(magnitude) + 0.5F;
    return f16{static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(sum) - 0x3f000000U))};
  }
  const std::uint32_t rounded = magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23);
  return f16{static_cast<std::uint16_t>(sign | (rounded >> 13))};
}

}  // namespace zerofleet
