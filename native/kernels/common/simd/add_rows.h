#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// target (cols, fp32) += row (cols).
ZF_DECLARE_KERNEL(void add_row(float* target, const void* row, int64_t cols, DType row_dtype))

}  // namespace zerofleet::cpu
