#pragma once

// bfloat16 rounding by integer operations, for the ZeRO kernels: what they write is the job's state, whose bits may not
// depend on the instruction-set path. The function store() in vec.h, for the model's kernels, is another one on
// purpose. Where the AVX512-BF16 instruction exists store() is that instruction, which is cheaper but takes subnormals
// for zero. Activations may differ between paths, as their sums in fp32 do, and the numerics fingerprint names the
// path. The type binary16 needs no second form (f16_bits.h): its instruction keeps subnormals.

#include <stdint.h>
#include <string.h>

#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

/// A bfloat16 that the functions below round with equal bits on every path. The uint16_t of vec.h is another type,
/// because its rounding flushes subnormals where the instruction does.
struct Bf16 {
  uint16_t bits;
};

/// Round to nearest, ties to even; NaN becomes a quiet NaN.
ZF_INLINE uint16_t bf16_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint32_t rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const uint32_t quiet = bits | 0x400000U;
  return static_cast<uint16_t>(((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded) >> 16);
}

ZF_INLINE vh bf16_bits(vf values) {
  const vu bits = as_bits(values);
  const vu rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const vu quiet = bits | 0x400000U;
  return __builtin_convertvector(((bits & 0x7fffffffU) > 0x7f800000U ? quiet : rounded) >> 16, vh);
}

ZF_INLINE float from_bf16_bits(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

ZF_INLINE vf load(const Bf16* p) { return load(&p->bits); }
ZF_INLINE void store(Bf16* p, vf x) { *reinterpret_cast<vh_unaligned*>(p) = bf16_bits(x); }

#if defined(__AVX512F__)
ZF_INLINE vf load_first(const Bf16* p, int count) { return load_first(&p->bits, count); }
ZF_INLINE void store_first(Bf16* p, vf x, int count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), reinterpret_cast<__m256i>(bf16_bits(x)));
}
#endif

}  // namespace zerofleet::cpu::ZF_ISA_NS
