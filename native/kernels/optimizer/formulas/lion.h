#pragma once

#include "kernels/optimizer/formulas/element.h"

namespace zerofleet {

struct LionScalars {
  float grad_factor = 1;      // applied to every gradient element
  float one_minus_beta1 = 0;  // 1 - beta1
  float one_minus_beta2 = 0;  // 1 - beta2
  float decay_factor = 1;     // 1 - lr × weight_decay
  float lr = 0;
};

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023). The moment m is in states[0]:
///   g = grad × grad_factor;  c = m + (g - m)(1 - beta1);  m = flushed(m + (g - m)(1 - beta2))
///   master = master × decay_factor - lr × sign(c), sign(0) = 0
struct LionUpdate : ElementUpdate<1> {
  using Scalars = LionScalars;

  template <class M>
  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {
    using Value = typename M::Value;
    const Value m = e.states[0], zero = M::set(0.0F);
    const Value g = e.grad * k.grad_factor;
    const Value c = m + (g - m) * k.one_minus_beta1;
    e.states[0] = M::flushed(m + (g - m) * k.one_minus_beta2);
    const Value change = M::select(c > zero, M::set(k.lr), M::select(c < zero, M::set(-k.lr), zero));
    e.master = e.master * k.decay_factor - change;
  }
};

}  // namespace zerofleet
