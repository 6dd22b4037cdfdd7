#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// target = source × factor, rounded to the target's type.
ZF_DECLARE_KERNEL(void scale_to(const float* source, float factor, void* target, DType dtype, int64_t numel))
ZF_DECLARE_KERNEL(void widen_from_bf16(const uint16_t* source, float* target, int64_t numel))
ZF_DECLARE_KERNEL(void narrow_to_f16(const float* source, uint16_t* target, int64_t numel))
ZF_DECLARE_KERNEL(void widen_from_f16(const uint16_t* source, float* target, int64_t numel))

}  // namespace zerofleet::cpu
