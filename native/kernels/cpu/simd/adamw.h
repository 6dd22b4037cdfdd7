#pragma once

#include <stdint.h>

#include "kernels/adamw_scalars.h"
#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

/// A stretch of one segment, arrays of `numel` elements; see kernels/adamw.h for the arithmetic.
struct AdamWTile {
  float* master;
  float* exp_avg;
  float* exp_avg_sq;
  const float* grad;
  int64_t numel;
  float decay_factor;  // 1 where the segment has no decay
};

ZF_DECLARE_KERNEL(void adamw_bf16(const AdamWTile& tile, uint16_t* params, const AdamWScalars& scalars))
ZF_DECLARE_KERNEL(void adamw_f32(const AdamWTile& tile, float* params, const AdamWScalars& scalars))

}  // namespace zerofleet::cpu
