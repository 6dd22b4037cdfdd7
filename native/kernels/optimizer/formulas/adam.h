#pragma once

#include "kernels/optimizer/formulas/element.h"

namespace zerofleet {

/// Constants that include the bias corrections.
struct AdamScalars {
  float grad_factor = 1;      // applied to every gradient element
  float weight_decay = 0;     // L2: weight_decay × master is added to the gradient
  float one_minus_beta1 = 0;  // 1 - beta1
  float beta2 = 0;
  float one_minus_beta2 = 0;       // 1 - beta2
  float eps = 0;                   // > 0
  float step_size = 0;             // lr / (1 - beta1^step)
  float inv_sqrt_correction2 = 1;  // 1 / sqrt(1 - beta2^step)
};

/// Adam with L2 regularisation (Kingma and Ba, "Adam: a method for stochastic optimization", 2015). The moments m and v
/// are in states[0] and states[1] (move_moments()):
///   g = grad × grad_factor + master × weight_decay
///   master -= step_size × m / (sqrt(v) × inv_sqrt_correction2 + eps)
struct AdamUpdate : ElementUpdate<2> {
  using Scalars = AdamScalars;

  template <class M>
  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {
    move_moments<M>(e, e.grad * k.grad_factor + e.master * k.weight_decay, k);
    const typename M::Value denominator = M::sqrt(e.states[1]) * k.inv_sqrt_correction2 + k.eps;
    e.master = e.master - k.step_size * e.states[0] / denominator;
  }
};

}  // namespace zerofleet
