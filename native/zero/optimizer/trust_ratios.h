#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace zerofleet {

/// Trust ratios of the parameters of one group.
struct TrustRatios {
  float least = 1;
  float median = 1;
  float largest = 1;
};

/// Returns the spread of at least one ratio, and reorders the ratios. The median of an even number is the mean of the
/// middle two.
inline TrustRatios spread_of(std::span<float> ratios) {
  std::ranges::sort(ratios);
  const std::size_t middle = ratios.size() / 2;
  const float median = ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
  return {ratios.front(), median, ratios.back()};
}

}  // namespace zerofleet
