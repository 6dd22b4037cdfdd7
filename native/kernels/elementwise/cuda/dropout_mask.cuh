#pragma once

#include <array>
#include <cstdint>

#include "core/philox.h"
#include "kernels/elementwise/dropout.h"

// Mask of a dropout; kernels/elementwise/dropout.h has the rule.
namespace zerofleet::cuda {

/// The draws of the elements e, e + 16, e + 32 and e + 48 of a group of 64 that begins at a multiple of 64; e mod 64
/// < 16.
__device__ inline std::array<std::uint32_t, 4> dropout_draws(const DropoutRule& rule, std::uint64_t element) {
  const std::uint64_t counter = element / 64 * 16 + element % 16;
  return philox(rule.stream, {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0});
}

/// Returns true if an element is kept. The word is picked without an index that only the run knows: such an array
/// leaves registers.
__device__ inline bool dropout_keeps(const DropoutRule& rule, std::uint64_t element) {
  const std::array words = dropout_draws(rule, element);
  const unsigned word = static_cast<unsigned>(element % 64 / 16);
  const std::uint32_t low = (word & 1U) != 0 ? words[1] : words[0], high = (word & 1U) != 0 ? words[3] : words[2];
  return ((word & 2U) != 0 ? high : low) >= rule.dropped_below;
}

}  // namespace zerofleet::cuda
