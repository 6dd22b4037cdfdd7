#pragma once

#include <algorithm>
#include <cstdint>

namespace zerofleet {

/// Half-open interval [begin, end); the unit (elements, blocks, bytes) stands in the name of the variable.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  std::int64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  friend bool operator==(const Range&, const Range&) = default;
};

/// The range in a unit of which `factor` are one of its own: elements in bytes.
inline Range scaled(const Range& range, std::int64_t factor) { return {range.begin * factor, range.end * factor}; }

inline Range intersect(const Range& a, const Range& b) {
  const Range both{std::max(a.begin, b.begin), std::min(a.end, b.end)};
  return both.empty() ? Range{} : both;
}

}  // namespace zerofleet
