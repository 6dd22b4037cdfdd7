#pragma once

#include "kernels/optimizer/formulas/element.h"

namespace zerofleet {

struct AdagradScalars {
  float grad_factor = 1;   // applied to every gradient element
  float weight_decay = 0;  // L2: weight_decay × master is added to the gradient
  float eps = 0;           // > 0
  float step_size = 0;     // lr / (1 + (step - 1) × lr_decay)
};

/// Adagrad (Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011), as torch.optim has it. The sum of squares s
/// is in states[0]:
///   g = grad × grad_factor + master × weight_decay;  s = flushed(s + g × g)
///   master -= step_size × g / (sqrt(s) + eps)
struct AdagradUpdate : ElementUpdate<1> {
  using Scalars = AdagradScalars;

  template <class M>
  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {
    const typename M::Value g = e.grad * k.grad_factor + e.master * k.weight_decay;
    e.states[0] = M::flushed(e.states[0] + g * g);
    e.master = e.master - k.step_size * g / (M::sqrt(e.states[0]) + k.eps);
  }
};

}  // namespace zerofleet
