#pragma once

#include <stdint.h>

#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

/// sum[i] = (((start + p0[i]) + p1[i]) …), start = 0 with `restart`, else sum[i]; piece j begins at pieces + j × stride.
ZF_DECLARE_KERNEL(void fold_bf16(const uint16_t* pieces, int64_t stride, int64_t num_pieces, bool restart, float* sum,
                                 int64_t numel))
ZF_DECLARE_KERNEL(void fold_f32(const float* pieces, int64_t stride, int64_t num_pieces, bool restart, float* sum,
                                 int64_t numel))

}  // namespace zerofleet::cpu
