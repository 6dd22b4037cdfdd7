#include "kernels/cpu/simd/block_stats.h"

#include "kernels/cpu/simd/stream.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double f64x8 __attribute__((vector_size(64)));

ZF_INLINE f64x8 widened(const float* values) {
  return __builtin_convertvector(*reinterpret_cast<const f32x8*>(values), f64x8);
}

}  // namespace

double sum_squares(const float* values, int64_t numel) {
  f64x8 sums[4] = {};  // running sums of elements 0..7, 8..15, 16..23 and 24..31 of every 32
  for (int64_t i = 0; i < numel; i += 32) {
    prefetch_ahead(values + i);
    prefetch_ahead(values + i + 16);
    for (int part = 0; part < 4; ++part) {
      const f64x8 x = widened(values + i + 8 * part);
      sums[part] += x * x;
    }
  }
  f64x8 sum = (sums[0] + sums[2]) + (sums[1] + sums[3]);
  for (int half = 4; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) sum[i] += sum[i + half];
  }
  return sum[0];
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
