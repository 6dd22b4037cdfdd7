#pragma once

#include "kernels/optimizer/formulas/element.h"

namespace zerofleet {

/// Constants that include the bias corrections.
struct LambScalars {
  float grad_factor = 1;      // applied to every gradient element
  float one_minus_beta1 = 0;  // 1 - beta1
  float beta2 = 0;
  float one_minus_beta2 = 0;       // 1 - beta2
  float eps = 0;                   // > 0
  float weight_decay = 0;          // inside the update, so the trust ratio scales it too
  float inv_correction1 = 1;       // 1 / (1 - beta1^step), or 1 where the update is not corrected
  float inv_sqrt_correction2 = 1;  // 1 / sqrt(1 - beta2^step), or 1
  float lr = 0;                    // in the second pass times the trust ratio
};

/// LAMB's first pass over one element: g = grad × grad_factor, and move_moments(). The master stays.
template <class M>
ZF_FORMULA void move_lamb_moments(Element<M>& e, const LambScalars& k) {
  move_moments<M>(e, e.grad * k.grad_factor, k);
}

/// u = (m × inv_correction1) / (sqrt(v) × inv_sqrt_correction2 + eps) + master × weight_decay
template <class M>
ZF_FORMULA typename M::Value raw_lamb_update(const Element<M>& e, const LambScalars& k) {
  const typename M::Value denominator = M::sqrt(e.states[1]) * k.inv_sqrt_correction2 + k.eps;
  return (e.states[0] * k.inv_correction1) / denominator + e.master * k.weight_decay;
}

/// LAMB's second pass: master -= lr × u
struct LambUpdate : ElementUpdate<2> {
  using Scalars = LambScalars;
  static constexpr bool kReadsGrad = false;
  static constexpr bool kWritesStates = false;

  template <class M>
  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {
    e.master = e.master - k.lr * raw_lamb_update<M>(e, k);
  }
};

}  // namespace zerofleet
