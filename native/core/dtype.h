#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace zerofleet {

enum class DType : std::uint8_t { kF32, kBF16 };

constexpr std::size_t size_of(DType dtype) { return dtype == DType::kF32 ? 4 : 2; }

constexpr const char* name_of(DType dtype) { return dtype == DType::kF32 ? "fp32" : "bf16"; }

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

}  // namespace zerofleet
