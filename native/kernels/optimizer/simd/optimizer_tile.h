#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"

namespace zerofleet::cpu {

/// A stretch of one segment with everything in fp32; arrays of `numel` elements. Plain data for SIMD sources.
struct OptimizerTile {
  float* master;
  float* states[2];
  const float* grad;
  int64_t numel;
  // Second destination of the new master, rounded; aligned to a cache line. Null where that is done after the tile, or
  // not wanted.
  void* params;
  DType params_dtype;
};

}  // namespace zerofleet::cpu
