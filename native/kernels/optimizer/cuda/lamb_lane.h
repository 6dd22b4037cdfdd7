#pragma once

#include <cstdint>

#include "kernels/flat/cuda/block_lanes.h"
#include "kernels/optimizer/cuda/segment_batch.h"
#include "kernels/optimizer/formulas/lamb.h"

namespace zerofleet::cuda {

struct LambLane {
  double weights = 0;
  double updates = 0;
};

/// The part of one lane in LAMB's first pass over a block: moves the moments of its elements and sums up squares.
ZF_HOST_DEVICE inline LambLane lamb_lane(const SegmentBatch<LambScalars>& batch, std::int64_t tile,
                                         std::int64_t block_numel, int lane) {
  const int index = batch.segment_of(tile);
  const OptimizerSegment& arrays = batch.segments[index].arrays;
  const std::int64_t begin = (tile - batch.first_tiles[index]) * block_numel;
  BlockLane weights, updates;
  ZF_DEVICE_UNROLL(4)
  for (std::int64_t i = begin + lane; i < begin + block_numel; i += kLanes) {
    const Place4 at{i, 1, false};
    Element<FloatArithmetic> element{load4(arrays.master, batch.dtypes.master, at).v[0],
                                     {arrays.states[0][i], arrays.states[1][i]},
                                     load4(arrays.grad, batch.dtypes.grad, at).v[0]};
    move_lamb_moments<FloatArithmetic>(element, batch.scalars[index]);
    arrays.states[0][i] = element.states[0];
    arrays.states[1][i] = element.states[1];
    weights.add(element.master);
    updates.add(raw_lamb_update<FloatArithmetic>(element, batch.scalars[index]));
  }
  return {weights.sum_squares, updates.sum_squares};
}

}  // namespace zerofleet::cuda
