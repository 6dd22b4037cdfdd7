#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/optimizer/optimizer_segment.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

/// Position of a tile: elements from `begin` on of segment number `segment`.
struct TileOrigin {
  std::size_t segment = 0;
  std::int64_t begin = 0;
};

inline constexpr std::int64_t kMaxTileNumel = 4096;

/// Array accesses of a pass, and its division into tiles.
struct TileAccess {
  bool reads_grad = true;
  bool writes_master = true;    // and the parameters from it
  std::int64_t tile_numel = 0;  // at most kMaxTileNumel; 0: the best size for the storage
};

/// Elements of one parallel task, a multiple of every tile size. Tasks are fixed by the segments alone and every
/// element (or block) is computed alone, so results don't depend on how many threads share the tasks. The size keeps a
/// task's arrays within a few huge pages.
inline constexpr std::int64_t kTaskNumel = 32768;

/// Shows runs of elements as fp32 tiles, whatever their storage is. Arrays that are fp32 are used where they are.
/// Others pass through scratch memory that stays in the first-level cache. So each optimizer is written once, for fp32.
class TileStorage {
 public:
  TileStorage(const Context& context, const OptimizerDTypes& dtypes, const TileAccess& access);

  std::int64_t tile_numel() const { return access_.tile_numel; }

  /// Arrays of one worker.
  struct Scratch {
    alignas(64) float master[kMaxTileNumel];
    alignas(64) float grad[kMaxTileNumel];
  };

  OptimizerTile open(const OptimizerSegment& segment, std::int64_t begin, std::int64_t numel, Scratch& scratch) const;
  /// Writes back the values that did not stay in place: a rounded master, and parameters that the tile did not have.
  /// Moves the average while the master is in the cache.
  void close(const OptimizerSegment& segment, std::int64_t begin, const OptimizerTile& tile) const;
  /// After the last tile of a task: makes its writes visible to other threads.
  void end_task() const { finish_(); }

 private:
  std::byte* params_at(const OptimizerSegment& segment, std::int64_t begin) const;

  using Widen = void(const std::uint16_t*, float*, std::int64_t);
  using Narrow = void(const float*, std::uint16_t*, std::int64_t);
  using Write = void(const float*, void*, DType, std::int64_t);
  using Average = void(const float*, float*, float, std::int64_t);

  OptimizerDTypes dtypes_;
  TileAccess access_;
  Widen* widen_master_;
  Narrow* narrow_master_;
  Widen* widen_grad_;
  Write* write_params_;
  Average* move_average_;
  void (*finish_)();
};

/// Calls body(tile, origin) for all elements of all segments, on the threads of the context; tiles of one task come in
/// ascending order on one thread. Tasks of all segments are numbered through, so that many short segments still make
/// one parallel pass.
template <class Body>
void for_each_optimizer_tile(const Context& context, std::span<const OptimizerSegment> segments,
                             const OptimizerDTypes& dtypes, const TileAccess& access, const Body& body) {
  const TileStorage storage(context, dtypes, access);
  std::vector<std::int64_t> first_tasks{0};
  for (const OptimizerSegment& segment : segments) {
    first_tasks.push_back(first_tasks.back() + (segment.numel + kTaskNumel - 1) / kTaskNumel);
  }
  context.pool->parallel_for(first_tasks.back(), [&](std::int64_t task, int) {
    const auto index = static_cast<std::size_t>(std::ranges::upper_bound(first_tasks, task) - first_tasks.begin()) - 1;
    const OptimizerSegment& segment = segments[index];
    TileStorage::Scratch scratch;
    std::int64_t begin = (task - first_tasks[index]) * kTaskNumel;
    const std::int64_t end = std::min(begin + kTaskNumel, segment.numel);
    for (; begin < end; begin += storage.tile_numel()) {
      const OptimizerTile tile = storage.open(segment, begin, std::min(storage.tile_numel(), end - begin), scratch);
      body(tile, TileOrigin{index, begin});
      storage.close(segment, begin, tile);
    }
    storage.end_task();
  });
}

}  // namespace zerofleet::cpu
