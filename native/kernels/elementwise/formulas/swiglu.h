#pragma once

#include "core/host_device.h"
#include "kernels/common/formulas/arithmetic.h"

namespace zerofleet {

/// gate · sigmoid(gate) · up
template <class M>
ZF_FORMULA typename M::Value swiglu_of(typename M::Value gate, typename M::Value up) {
  return gate * sigmoid<M>(gate) * up;
}

template <class M>
struct SwigluGradients {
  typename M::Value gate;
  typename M::Value up;
};

/// For σ = sigmoid(g): d(g·σ)/dg = σ + g·σ·(1 − σ). `dact`: the gradient of the result.
template <class M>
ZF_FORMULA SwigluGradients<M> swiglu_gradients(typename M::Value gate, typename M::Value up, typename M::Value dact) {
  const typename M::Value s = sigmoid<M>(gate), silu = gate * s;
  return {dact * up * (s + silu * (1.0F - s)), dact * silu};
}

}  // namespace zerofleet
