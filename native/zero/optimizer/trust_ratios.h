#pragma once

#include <algorithm>
#include <cstddef>
#include <span>

namespace zerofleet {

/// Of the parameters of one group.
struct TrustRatios {
  float least = 1;
  float median = 1;
  float largest = 1;
};

/// Of at least one ratio; they are reordered. Of two in the middle the median is the mean.
inline TrustRatios spread_of(std::span<float> ratios) {
  std::ranges::sort(ratios);
  const std::size_t middle = ratios.size() / 2;
  const float median = ratios.size() % 2 == 1 ? ratios[middle] : (ratios[middle - 1] + ratios[middle]) / 2;
  return {ratios.front(), median, ratios.back()};
}

}  // namespace zerofleet
