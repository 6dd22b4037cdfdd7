#pragma once

#include <stdint.h>

namespace zerofleet::cpu {

/// A short stretch of one segment with everything in fp32; arrays of `numel` elements. Plain data for SIMD sources.
struct OptimizerTile {
  float* master;
  float* states[2];
  const float* grad;
  int64_t numel;
};

}  // namespace zerofleet::cpu
