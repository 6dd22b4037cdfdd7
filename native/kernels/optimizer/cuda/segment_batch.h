#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/vec4.h"
#include "kernels/optimizer/formulas/average.h"
#include "kernels/optimizer/formulas/element.h"
#include "kernels/optimizer/optimizer_segment.h"

namespace zerofleet::cuda {

/// Segments of one launch. They travel as the kernel's argument (at most 4 KiB), so that nothing has to be allocated or
/// copied, and many short segments still make one launch.
inline constexpr int kBatchSegments = 32;

struct SegmentRecord {
  OptimizerSegment arrays;
  bool aligned = false;  // all arrays, for groups of four
};

template <class Scalars>
struct SegmentBatch {
  OptimizerDTypes dtypes;
  int num_segments = 0;
  std::int64_t first_tiles[kBatchSegments + 1] = {};  // tiles are numbered through all segments
  SegmentRecord segments[kBatchSegments];
  Scalars scalars[kBatchSegments];  // of each segment

  std::int64_t num_tiles() const { return first_tiles[num_segments]; }

  void add(const OptimizerSegment& segment, const Scalars& its_scalars, std::int64_t tile_numel) {
    bool aligned = aligned_for_four(segment.master, dtypes.master) && aligned_for_four(segment.grad, dtypes.grad) &&
                   aligned_for_four(segment.params, dtypes.params) &&
                   aligned_for_four(segment.average.values, DType::kF32);
    for (const float* state : segment.states) aligned = aligned && aligned_for_four(state, DType::kF32);
    segments[num_segments] = {segment, aligned};
    scalars[num_segments] = its_scalars;
    first_tiles[num_segments + 1] = num_tiles() + (segment.numel + tile_numel - 1) / tile_numel;
    ++num_segments;
  }

  /// The segment of a tile.
  ZF_HOST_DEVICE int segment_of(std::int64_t tile) const {
    int low = 0, high = num_segments;  // first_tiles[low] <= tile < first_tiles[high]
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_tiles[middle] <= tile ? low : high) = middle;
    }
    return low;
  }
};

/// Cuts the segments into batches and calls launch(batch) for each.
template <class Scalars, class Launch>
void for_each_batch(std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes, std::int64_t tile_numel,
                    std::span<const Scalars> groups, const Launch& launch) {
  SegmentBatch<Scalars> batch;
  const auto flush = [&] {
    if (batch.num_tiles() > 0) launch(batch);
    batch = {};
    batch.dtypes = dtypes;
  };
  flush();
  for (const OptimizerSegment& segment : segments) {
    if (segment.numel == 0) continue;
    batch.add(segment, groups[segment.group], tile_numel);
    if (batch.num_segments == kBatchSegments) flush();
  }
  flush();
}

/// Elements that one thread block updates: four for each thread.
inline constexpr int kUpdateThreads = 256;
inline constexpr std::int64_t kUpdateTile = 4 * kUpdateThreads;

/// Thread `thread` of the block that updates tile `tile`.
template <class Update>
ZF_HOST_DEVICE inline void update_tile(const SegmentBatch<typename Update::Scalars>& batch, std::int64_t tile,
                                       int thread) {
  const int index = batch.segment_of(tile);
  const OptimizerSegment& arrays = batch.segments[index].arrays;
  const std::int64_t first = (tile - batch.first_tiles[index]) * kUpdateTile + 4 * thread;
  if (first >= arrays.numel) return;
  const Place4 at = place4(first, arrays.numel, batch.segments[index].aligned);
  Vec4 master = load4(arrays.master, batch.dtypes.master, at), grad{}, states[2] = {};
  if constexpr (Update::kReadsGrad) grad = load4(arrays.grad, batch.dtypes.grad, at);
  ZF_DEVICE_UNROLL(2)
  for (int s = 0; s < Update::kNumStates; ++s) {
    states[s] = load4_as<float>(reinterpret_cast<const std::byte*>(arrays.states[s]), at);
  }
  ZF_DEVICE_UNROLL(4)
  for (int k = 0; k < 4; ++k) {
    Element<FloatArithmetic> element{master.v[k], {states[0].v[k], states[1].v[k]}, grad.v[k]};
    Update::template apply<FloatArithmetic>(element, batch.scalars[index]);
    // Parameters are rounded from the stored master.
    master.v[k] = rounded(element.master, batch.dtypes.master);
    states[0].v[k] = element.states[0];
    states[1].v[k] = element.states[1];
  }
  store4(arrays.master, batch.dtypes.master, at, master);
  if constexpr (Update::kWritesStates) {
    ZF_DEVICE_UNROLL(2)
    for (int s = 0; s < Update::kNumStates; ++s) {
      store4_as<float>(reinterpret_cast<std::byte*>(arrays.states[s]), at, states[s]);
    }
  }
  if (arrays.params != nullptr) store4(arrays.params, batch.dtypes.params, at, master);
  if (arrays.average.values == nullptr) return;
  auto* values = reinterpret_cast<std::byte*>(arrays.average.values);
  Vec4 average = load4_as<float>(values, at);
  ZF_DEVICE_UNROLL(4)
  for (int k = 0; k < 4; ++k)
    average.v[k] = moved_average<FloatArithmetic>(average.v[k], master.v[k], arrays.average.weight);
  store4_as<float>(values, at, average);
}

}  // namespace zerofleet::cuda
