#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/optimizer/formulas/lamb.h"
#include "kernels/optimizer/optimizer_segment.h"

namespace zerofleet {

/// Destination of the sums of lamb_prepare(): block b of segment s uses slot first_stats[s] + b of both arrays.
struct LambSums {
  std::int64_t block_numel = 4096;
  std::span<const std::int64_t> first_stats;  // (number of segments)
  std::span<double> weights;
  std::span<double> updates;
};

/// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2020). It takes two
/// passes, because a step needs the norms of the whole parameter. The moments m and v are in states[0] and states[1],
/// and the scalars are those of the segment's group. The first pass moves the moments, for every element
///   g = grad × grad_factor;  m = flushed(m + (g - m)(1 - beta1));
///   v = flushed(v × beta2 + g × g × (1 - beta2))
///
/// This pass also sums, block by block in the order of block_stats(), the squares of the master and of the raw update
///   u = (m × inv_correction1) / (sqrt(v) × inv_sqrt_correction2 + eps) + master × weight_decay
///
/// Only correctly rounded operations in a fixed order and no fused ones: every instruction-set path gives equal bits.
/// Throws Error{"invalid_argument"} for eps <= 0, and for a block that is not 32 to 4096 elements and a multiple of 32.
/// Throws it also for segments that are not whole blocks, for sums without a slot, and as check_segments() does.
void lamb_prepare(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                  std::span<const LambScalars> groups, const LambSums& sums);

/// The second pass, which makes u again instead of having stored it: for every element of segment s
///   master -= lr × trust_ratios[s] × u;  params = round(master)
/// and the average moves (MovingAverage). Neither gradients nor moments are written, and gradients are not read.
/// Throws Error{"invalid_argument"} for eps <= 0, a number of ratios other than that of segments, and as
/// check_segments() does.
void lamb_update(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                 std::span<const LambScalars> groups, std::span<const float> trust_ratios);

}  // namespace zerofleet
