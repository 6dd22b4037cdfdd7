#pragma once

// The part that every softmax shares. For SIMD sources only.

#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/math.h"

namespace zerofleet::cpu::ZF_ISA_NS {

struct Exponentials {
  float largest;  // of the scores
  float sum;      // of exp(score − largest)
};

/// powers (count) = exp(score − largest score) for scores (count), which may be the same array; null: the sum alone.
template <class T>
ZF_INLINE Exponentials exponentials(const T* scores, float* powers, int64_t count) {
  vf largest = set1(-__builtin_inff());
  sweep(count,
        [&](int64_t i, auto part) { largest = max(within(load(scores + i, part), part, -__builtin_inff()), largest); });
  const float top = max_lanes(largest);
  vf sums = zero();
  sweep(count, [&](int64_t i, auto part) {
    const vf e = exp(load(scores + i, part) - set1(top));
    if (powers != nullptr) store(powers + i, e, part);
    sums += within(e, part, 0.0F);
  });
  return {top, sum_lanes(sums)};
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
