#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

struct BlockStats {
  double sum_squares;
  float max_abs;
};

/// Statistics of `numel` values (a multiple of 32), in the order that kernels/flat/block_stats.h states.
ZF_DECLARE_KERNEL(BlockStats stats_of_block(const void* values, DType dtype, int64_t numel))

}  // namespace zerofleet::cpu
