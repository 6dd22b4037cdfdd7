#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <span>

#include "core/device/context.h"

namespace zerofleet::bench {

/// Calls body(begin, count) for tiles of `numel` elements, on all threads.
template <class Body>
void for_tiles(const Context& context, std::int64_t numel, Body&& body) {
  constexpr std::int64_t kTile = 1 << 16;
  context.pool->parallel_for((numel + kTile - 1) / kTile, [&](std::int64_t task, int) {
    body(task * kTile, std::min(kTile, numel - task * kTile));
  });
}

/// Memory bound of an operation that updates arrays: reads and writes each byte of an array once. Half of the bytes
/// moved are reads and half writes, so the array is half as large as the traffic that it stands for.
inline void update_in_place(const Context& context, std::span<float> values) {
  for_tiles(context, static_cast<std::int64_t>(values.size()), [&](std::int64_t start, std::int64_t count) {
    float* begin = values.data() + start;
    for (std::int64_t i = 0; i < count; ++i) begin[i] = begin[i] * 0.999F + 1e-3F;
  });
}

/// Memory bound of an operation that reads one array and writes another of the same size.
inline void copy(const Context& context, std::span<const float> from, std::span<float> to) {
  for_tiles(context, static_cast<std::int64_t>(from.size()), [&](std::int64_t start, std::int64_t count) {
    std::memcpy(to.data() + start, from.data() + start, static_cast<std::size_t>(count) * sizeof(float));
  });
}

/// Memory bound of an operation that reads an array once. Returns a sum, so that nothing is left out.
inline std::uint32_t read(const Context& context, std::span<const std::uint32_t> values) {
  constexpr std::int64_t kSums = 64;
  std::atomic<std::uint32_t> total = 0;
  for_tiles(context, static_cast<std::int64_t>(values.size()), [&](std::int64_t start, std::int64_t count) {
    std::uint32_t sums[kSums] = {};
    const std::uint32_t* begin = values.data() + start;
    for (std::int64_t i = 0; i + kSums <= count; i += kSums) {
      for (std::int64_t k = 0; k < kSums; ++k) sums[k] += begin[i + k];
    }
    total += std::accumulate(std::begin(sums), std::end(sums), 0U);
  });
  return total;
}

}  // namespace zerofleet::bench
