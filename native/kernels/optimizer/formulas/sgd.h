#pragma once

#include "kernels/optimizer/formulas/element.h"

namespace zerofleet {

struct SgdScalars {
  float grad_factor = 1;   // applied to every gradient element
  float weight_decay = 0;  // L2: weight_decay × master is added to the gradient
  float lr = 0;
  float momentum = 0;             // with a momentum buffer
  float one_minus_dampening = 1;  // 1 in the first step, whatever the dampening
};

// Stochastic gradient descent, as torch.optim has it (Sutskever et al., "On the importance of initialization and
// momentum in deep learning", 2013):
//   g = grad × grad_factor + master × weight_decay;  master -= lr × g
template <class M>
ZF_FORMULA typename M::Value decayed_grad(const Element<M>& e, const SgdScalars& k) {
  return e.grad * k.grad_factor + e.master * k.weight_decay;
}

struct SgdUpdate : ElementUpdate<0> {
  using Scalars = SgdScalars;

  template <class M>
  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {
    e.master = e.master - k.lr * decayed_grad<M>(e, k);
  }
};

/// SGD with the momentum buffer b in states[0]: b = flushed(b × momentum + g × one_minus_dampening);  master -= lr × b
struct SgdMomentumUpdate : ElementUpdate<1> {
  using Scalars = SgdScalars;

  template <class M>
  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {
    e.states[0] = M::flushed(e.states[0] * k.momentum + decayed_grad<M>(e, k) * k.one_minus_dampening);
    e.master = e.master - k.lr * e.states[0];
  }
};

/// SGD with Nesterov momentum: b as above;  master -= lr × (g + b × momentum)
struct SgdNesterovUpdate : ElementUpdate<1> {
  using Scalars = SgdScalars;

  template <class M>
  ZF_FORMULA static void apply(Element<M>& e, const Scalars& k) {
    const typename M::Value g = decayed_grad<M>(e, k);
    e.states[0] = M::flushed(e.states[0] * k.momentum + g * k.one_minus_dampening);
    e.master = e.master - k.lr * (g + e.states[0] * k.momentum);
  }
};

}  // namespace zerofleet
