#pragma once

#include "core/host_device.h"
#include "kernels/common/formulas/arithmetic.h"
#include "kernels/elementwise/formulas/gelu.h"

namespace zerofleet {

template <class M>
struct GluGradients {
  typename M::Value gate;
  typename M::Value up;
};

/// gate · sigmoid(gate) · up
struct Swiglu {
  template <class M>
  ZF_FORMULA static typename M::Value value(typename M::Value gate, typename M::Value up) {
    return gate * sigmoid<M>(gate) * up;
  }

  /// For σ = sigmoid(g): d(g·σ)/dg = σ + g·σ·(1 − σ). `dact`: the gradient of the result.
  template <class M>
  ZF_FORMULA static GluGradients<M> gradients(typename M::Value gate, typename M::Value up, typename M::Value dact) {
    const typename M::Value s = sigmoid<M>(gate), silu = gate * s;
    return {dact * up * (s + silu * (1.0F - s)), dact * silu};
  }
};

/// gelu(gate) · up
struct GegluTanh {
  template <class M>
  ZF_FORMULA static typename M::Value value(typename M::Value gate, typename M::Value up) {
    return TanhGelu::value<M>(gate) * up;
  }

  template <class M>
  ZF_FORMULA static GluGradients<M> gradients(typename M::Value gate, typename M::Value up, typename M::Value dact) {
    return {dact * up * TanhGelu::slope<M>(gate), dact * TanhGelu::value<M>(gate)};
  }
};

}  // namespace zerofleet
