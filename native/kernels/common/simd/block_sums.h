#pragma once

// The fixed order of a block's sum: 32 running fp64 sums by element index mod 32, folded by halves. For SIMD sources
// only.

#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

// Doubles fill vectors of the native width: GCC 12 passes wider ones through memory in halves.
constexpr int kDoubles = kLanes / 2;
typedef double vd __attribute__((vector_size(kLanes * 4)));
typedef float vf_half_unaligned __attribute__((vector_size(kLanes * 2), aligned(4), may_alias));

ZF_INLINE vd widen(const float* p) {
// GCC 12 widens the halves of a vector one by one.
#if defined(__AVX512F__)
  return _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p));  // the unmasked form trips a false warning of GCC 12
#elif defined(__AVX2__)
  return _mm256_cvtps_pd(_mm_loadu_ps(p));
#else
  return __builtin_convertvector(*reinterpret_cast<const vf_half_unaligned*>(p), vd);
#endif
}

struct SquareSums {
  vd running[32 / kDoubles] = {};  // vector v has the elements from v · kDoubles on, of every 32
};

ZF_INLINE void add_squares_of_32(SquareSums& sums, const float* values) {
  for (int i = 0; i < 32; i += kDoubles) {
    const vd x = widen(values + i);
    sums.running[i / kDoubles] += x * x;
  }
}

ZF_INLINE double folded(const SquareSums& sums) {
  double sum[32];
  __builtin_memcpy(sum, sums.running, sizeof sum);
  for (int half = 16; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
