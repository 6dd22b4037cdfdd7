#pragma once

#include <stdint.h>

#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

/// target (cols, fp32) += row (cols, fp32 or bf16).
ZF_DECLARE_KERNEL(void add_row(float* target, const void* row, int64_t cols, bool row_is_bf16))

}  // namespace zerofleet::cpu
