#pragma once

// Conversion between IEEE-754 binary16 and binary32. Where the path has no instruction for it (F16C), integer
// operations do the same, NaN and subnormals included, so every path gives the same bits as core/dtype.h. The generic
// path must not be compiled with flushing of subnormals.

#include <stdint.h>
#include <string.h>

#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

/// An element of binary16, to tell it from bfloat16's uint16_t where a kernel is a template over its element.
struct Half {
  uint16_t bits;
};

/// Round to nearest, ties to even.
ZF_INLINE vh f16_bits(vf values) {
#if defined(__AVX512F__)
  // Masked forms: the others trip a false warning of GCC 12.
  return reinterpret_cast<vh>(_mm512_maskz_cvtps_ph(0xffff, values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__AVX2__)
  return reinterpret_cast<vh>(_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  const vu bits = as_bits(values);
  const vu sign = (bits >> 16) & 0x8000U;
  const vu magnitude = bits & 0x7fffffffU;
  const vu nan = 0x7e00U | ((magnitude >> 13) & 0x3ffU);
  const vu normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - (112U << 23)) >> 13;
  // Adding 0.5 puts the last place at 2^-24, so the addition itself rounds to a multiple of it.
  const vu subnormal = as_bits(from_bits(magnitude) + 0.5F) - 0x3f000000U;
  vu half = magnitude < 0x38800000U ? subnormal : normal;
  half = magnitude >= 0x477ff000U ? vu{} + 0x7c00U : half;
  half = magnitude > 0x7f800000U ? nan : half;
  return __builtin_convertvector(half | sign, vh);
#endif
}

/// Exact.
ZF_INLINE vf from_f16_bits(vh halves) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtph_ps(0xffff, reinterpret_cast<__m256i>(halves));
#elif defined(__AVX2__)
  return _mm256_cvtph_ps(reinterpret_cast<__m128i>(halves));
#else
  const vu bits = __builtin_convertvector(halves, vu);
  const vu sign = (bits & 0x8000U) << 16;
  const vu magnitude = bits & 0x7fffU;
  const vu normal = (magnitude << 13) + (112U << 23);
  const vu subnormal = as_bits(__builtin_convertvector(reinterpret_cast<vi>(magnitude), vf) * 0x1p-24F);
  const vu quiet = magnitude > 0x7c00U ? vu{} + 0x400000U : vu{};
  vu wide = magnitude < 0x400U ? subnormal : normal;
  wide = magnitude >= 0x7c00U ? 0x7f800000U | quiet | ((magnitude & 0x3ffU) << 13) : wide;
  return from_bits(wide | sign);
#endif
}

ZF_INLINE vf load(const Half* p) { return from_f16_bits(*reinterpret_cast<const vh_unaligned*>(p)); }

ZF_INLINE void store(Half* p, vf x) { *reinterpret_cast<vh_unaligned*>(p) = f16_bits(x); }

#if defined(__AVX512F__)
ZF_INLINE vf load_first(const Half* p, int count) {
  return _mm512_maskz_cvtph_ps(0xffff, _mm256_maskz_loadu_epi16(first_lanes(count), p));
}
ZF_INLINE void store_first(Half* p, vf x, int count) {
  _mm256_mask_storeu_epi16(p, first_lanes(count), reinterpret_cast<__m256i>(f16_bits(x)));
}
#endif

/// Converts a single element, by the same operations as a vector of them.
ZF_INLINE uint16_t f16_bits(float value) {
  const vh halves = f16_bits(set1(value));
  return halves[0];
}

ZF_INLINE float from_f16_bits(uint16_t half) {
  const vf values = from_f16_bits(vh{} + half);
  return values[0];
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
