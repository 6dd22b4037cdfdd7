#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Rounds (or copies) `numel` values to `target`, without reading its lines into the caches first where it is aligned
/// to a cache line.
ZF_DECLARE_KERNEL(void write_past_caches(const float* source, void* target, DType dtype, int64_t numel))

/// Before another thread may see such writes, the thread that made them must call this, once for many writes.
ZF_DECLARE_KERNEL(void finish_writes_past_caches())

}  // namespace zerofleet::cpu
