#pragma once

#include <stdint.h>

#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

/// Sum of squares of `numel` values (a multiple of 32) in fp64, in the order that kernels/block_stats.h states.
ZF_DECLARE_KERNEL(double sum_squares(const float* values, int64_t numel))

}  // namespace zerofleet::cpu
