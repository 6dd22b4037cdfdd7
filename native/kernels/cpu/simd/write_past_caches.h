#pragma once

#include <stddef.h>
#include <stdint.h>

#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

// Rounds (or copies) `numel` values to `target`, where it is aligned to a cache line without reading its lines into the
// caches first. Before another thread may see the writes the same thread must call finish_writes_past_caches(), once for
// many writes.
ZF_DECLARE_KERNEL(void write_f32_past_caches(const float* source, unsigned char* target, int64_t numel))
ZF_DECLARE_KERNEL(void write_bf16_past_caches(const float* source, unsigned char* target, int64_t numel))
ZF_DECLARE_KERNEL(void write_f16_past_caches(const float* source, unsigned char* target, int64_t numel))
ZF_DECLARE_KERNEL(void finish_writes_past_caches())

}  // namespace zerofleet::cpu
