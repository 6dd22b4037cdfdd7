#include "kernels/cpu/simd/block_stats.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

typedef float f32x8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef double f64x8 __attribute__((vector_size(64)));

}  // namespace

double sum_squares(const float* values, int64_t numel) {
  f64x8 low{}, high{};  // the running sums of elements 0..7 and 8..15 of every 16
  for (int64_t i = 0; i < numel; i += 16) {
    const f64x8 a = __builtin_convertvector(*reinterpret_cast<const f32x8*>(values + i), f64x8);
    const f64x8 b = __builtin_convertvector(*reinterpret_cast<const f32x8*>(values + i + 8), f64x8);
    low += a * a;
    high += b * b;
  }
  f64x8 sums = low + high;
  for (int half = 4; half >= 1; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
