#pragma once

#include <array>
#include <cstdint>

#include "core/philox.h"
#include "kernels/elementwise/dropout.h"

namespace zerofleet::test {

/// Returns true if a dropout keeps an element, by one call of the scalar generator.
inline bool kept(const DropoutRule& rule, std::uint64_t element) {
  const std::uint64_t counter = element / 64 * 16 + element % 16;
  const std::array words =
      philox(rule.stream, {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0, 0});
  return words[element % 64 / 16] >= rule.dropped_below;
}

}  // namespace zerofleet::test
