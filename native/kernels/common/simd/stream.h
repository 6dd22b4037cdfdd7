#pragma once

// Hints to the memory system for long passes over arrays that are much larger than the caches.

#include <stdint.h>

#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

/// Prefetches the cache line 512 bytes ahead of `values`. Harmless beyond the end of an array: a hint never faults.
ZF_INLINE void prefetch_ahead(const float* values) { __builtin_prefetch(values + 128, 0, 3); }

/// Returns true if stream() may write an array that begins here: it needs whole, aligned vectors.
ZF_INLINE bool can_stream(const void* target) { return reinterpret_cast<uintptr_t>(target) % 64 == 0; }

/// Writes one vector past the caches where the path has an instruction for it. After the last one of a task,
/// finish_streaming() makes the writes visible in order.
ZF_INLINE void stream(float* target, vf values) {
#if defined(__AVX512F__)
  _mm512_stream_ps(target, values);
#elif defined(__AVX2__)
  _mm256_stream_ps(target, values);
#else
  store(target, values);
#endif
}

ZF_INLINE void stream(uint16_t* target, vh values) {
#if defined(__AVX512F__)
  _mm256_stream_si256(reinterpret_cast<__m256i*>(target), reinterpret_cast<__m256i>(values));
#elif defined(__AVX2__)
  _mm_stream_si128(reinterpret_cast<__m128i*>(target), reinterpret_cast<__m128i>(values));
#else
  *reinterpret_cast<vh_unaligned*>(target) = values;
#endif
}

ZF_INLINE void finish_streaming() {
#if defined(__AVX2__)
  _mm_sfence();
#endif
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
