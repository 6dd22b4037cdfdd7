#pragma once

#include <algorithm>
#include <cstdint>

namespace zerofleet {

/// Rows of a pass that a block computes at once, where it takes them in several parts.
struct RowPart {
  std::int64_t first = 0;  // row of the pass
  /// Gradients of parameters are sums over all rows: the first part begins them, and the last one gives them away.
  bool begins = true, ends = true;

  bool is_whole() const { return begins && ends; }
};

/// Parts have a multiple of so many rows, except the last one. Sums over rows then have the bits of one sum.
inline constexpr std::int64_t kRowUnit = 64;

/// Returns the rows of the equal parts of at most `most` rows, a multiple of kRowUnit, that divide `rows`.
inline std::int64_t part_rows(std::int64_t rows, std::int64_t most) {
  if (rows <= most) return rows;
  const std::int64_t num_parts = (rows + most - 1) / most, length = (rows + num_parts - 1) / num_parts;
  return std::min(rows, (length + kRowUnit - 1) / kRowUnit * kRowUnit);
}

}  // namespace zerofleet
