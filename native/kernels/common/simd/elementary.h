#pragma once

#include <stdint.h>

#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

// The elementary functions of simd/math.h over whole arrays: y[i] = f(x[i]).
ZF_DECLARE_KERNEL(void exp_array(const float* x, float* y, int64_t count))
ZF_DECLARE_KERNEL(void sigmoid_array(const float* x, float* y, int64_t count))
ZF_DECLARE_KERNEL(void log_array(const float* x, float* y, int64_t count))

}  // namespace zerofleet::cpu
