#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/dtype.h"

namespace zerofleet {

inline constexpr std::size_t kMaxMoments = 2;  // arrays of an optimizer besides the master

/// Exponential moving average of the stored master: after each update values = flushed(values + (master - values) ×
/// weight).
struct MovingAverage {
  float* values = nullptr;  // (numel); null: none is kept
  float weight = 0;
};

/// Arrays of one run of elements with equal hyper-parameters, each (numel). `master`, `grad` and `params` have the
/// dtypes that are given with the segments; `states` are fp32, as many as the optimizer keeps. `params` is only
/// written, and may be null where no parameters are wanted.
///
/// States hold no subnormal numbers: in the formulas of the optimizers flushed(x) is 0 where |x| < 2^-126, else x. A
/// moment of a row without gradients would otherwise never reach zero (5 · 2^-149 times 0.9 rounds to itself). Besides,
/// processors take up to several times as long for arithmetic with subnormal numbers (docs/performance.md).
struct OptimizerSegment {
  std::byte* master = nullptr;
  float* states[kMaxMoments] = {};
  const std::byte* grad = nullptr;
  std::byte* params = nullptr;
  std::int64_t numel = 0;
  std::size_t group = 0;  // index into the scalars of the operation
  MovingAverage average;  // of passes that write the master
};

/// Storage of the arrays; all arithmetic is fp32. A master in fp16 is rounded after each update, and the parameters are
/// rounded from the stored master, so they can always be made again from it.
struct OptimizerDTypes {
  DType master = DType::kF32;  // fp32 or fp16
  DType grad = DType::kF32;
  DType params = DType::kBF16;
};

/// Checks the arguments of every optimizer's entry. Throws Error{"invalid_argument"} for a negative numel, a missing
/// array, a group that has no scalars or a bf16 master.
void check_segments(std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes, std::size_t num_states,
                    std::size_t num_groups);

/// Throws Error{"invalid_argument"} unless eps > 0: updates divide by it where a state is 0.
void require_eps(float eps);

}  // namespace zerofleet
