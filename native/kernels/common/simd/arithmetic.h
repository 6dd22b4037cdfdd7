#pragma once

// Vectors of the native width as formulas compute with them (kernels/common/formulas/arithmetic.h). For SIMD sources
// only.

#include "kernels/common/simd/math.h"
#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

struct VectorArithmetic {
  using Value = vf;

  ZF_INLINE vf set(float x) { return set1(x); }
  ZF_INLINE vf select(vi mask, vf yes, vf no) { return ZF_ISA_NS::select(mask, yes, no); }
  ZF_INLINE vf min(vf a, vf b) { return ZF_ISA_NS::min(a, b); }
  ZF_INLINE vf max(vf a, vf b) { return ZF_ISA_NS::max(a, b); }
  ZF_INLINE vf abs(vf x) { return ZF_ISA_NS::max(x, -x); }
  ZF_INLINE vf fma(vf a, vf b, vf c) { return ZF_ISA_NS::fma(a, b, c); }
  ZF_INLINE vf exp(vf x) { return ZF_ISA_NS::exp(x); }

  ZF_INLINE vf sqrt(vf x) {
#if defined(__AVX512F__)
    return _mm512_maskz_sqrt_ps(0xffff, x);  // the unmasked form trips a false warning of GCC 12
#elif defined(__AVX2__)
    return _mm256_sqrt_ps(x);
#else
    for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
#endif
  }

  ZF_INLINE vf flushed(vf x) {
#if defined(__AVX512F__)
    const __m512i exponent = _mm512_set1_epi32(0x7f800000);
    return _mm512_maskz_mov_ps(_mm512_test_epi32_mask(reinterpret_cast<__m512i>(x), exponent), x);
#else
    const vu bits = as_bits(x);
    return from_bits(bits & ~reinterpret_cast<vu>((bits & 0x7f800000U) == 0U));
#endif
  }
};

}  // namespace zerofleet::cpu::ZF_ISA_NS
