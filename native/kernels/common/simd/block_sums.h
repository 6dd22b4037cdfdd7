#pragma once

// The fixed order of a block's sum: 32 running fp64 sums by element index mod 32, folded by halves. For SIMD sources
// only.

#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double f64x8 __attribute__((vector_size(64)));

struct SquareSums {
  f64x8 running[4] = {};  // of elements 0..7, 8..15, 16..23 and 24..31 of every 32
};

ZF_INLINE void add_squares_of_32(SquareSums& sums, const float* values) {
  for (int part = 0; part < 4; ++part) {
    const f64x8 x = __builtin_convertvector(*reinterpret_cast<const f32x8*>(values + 8 * part), f64x8);
    sums.running[part] += x * x;
  }
}

ZF_INLINE double folded(const SquareSums& sums) {
  f64x8 sum = (sums.running[0] + sums.running[2]) + (sums.running[1] + sums.running[3]);
  for (int half = 4; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
