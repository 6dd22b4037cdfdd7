#include "kernels/common/simd/elementary.h"

#include "kernels/common/formulas/arithmetic.h"
#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/math.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void exp_array(const float* x, float* y, int64_t count) {
  sweep(count, [&](int64_t i, auto part) { store(y + i, exp(load(x + i, part)), part); });
}

void sigmoid_array(const float* x, float* y, int64_t count) {
  sweep(count, [&](int64_t i, auto part) { store(y + i, sigmoid<VectorArithmetic>(load(x + i, part)), part); });
}

void log_array(const float* x, float* y, int64_t count) {
  for (int64_t i = 0; i < count; ++i) y[i] = log(x[i]);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
