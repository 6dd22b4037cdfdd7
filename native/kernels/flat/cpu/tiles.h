#pragma once

#include <cstdint>

#include "core/device/context.h"

namespace zerofleet::cpu {

/// Elements of one task. The tiles are fixed and every element (or block) is computed alone, so results don't depend on
/// how many threads share the tiles. The size keeps a task's arrays within a few huge pages.
inline constexpr std::int64_t kTileNumel = 32768;

/// Calls body(begin, end) over [0, numel) in tiles, on the threads of the context.
template <class Body>
void for_each_tile(const Context& context, std::int64_t numel, Body&& body) {
  context.pool->parallel_for((numel + kTileNumel - 1) / kTileNumel, [&](std::int64_t task, int) {
    const std::int64_t begin = task * kTileNumel;
    body(begin, begin + kTileNumel < numel ? begin + kTileNumel : numel);
  });
}

}  // namespace zerofleet::cpu
