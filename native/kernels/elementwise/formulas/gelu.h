#pragma once

#include "core/host_device.h"
#include "kernels/common/formulas/arithmetic.h"

namespace zerofleet {

/// Beyond ±15, Φ and its derivative are 0 or 1 in fp32; inside, no intermediate value leaves its range. A NaN stays
/// one.
template <class M>
ZF_FORMULA typename M::Value bounded(typename M::Value x) {
  return M::min(M::set(15.0F), M::max(M::set(-15.0F), x));
}

template <class M>
struct Normal {
  typename M::Value distribution;  // Φ(x)
  typename M::Value density;       // φ(x) = exp(−x² / 2) / sqrt(2π), the derivative of Φ
};

/// For u = |x| / sqrt(2): Φ(−|x|) = erfc(u) / 2 = exp(−u²) · erfcx(u) / 2, which loses no digits far from 0. With t =
/// (u − 3) / (u + 3): erfcx(u) = (1 − t) · q(t). The polynomial q of degree 9 has the least largest relative error
/// (3e-9) for u up to 15 / sqrt(2). This polynomial was found by weighted least squares against torch.special.erfcx.
template <class M>
ZF_FORMULA Normal<M> normal(typename M::Value x) {
  using Value = typename M::Value;
  const Value in = bounded<M>(x);
  const Value u = M::abs(in) * 0.707106781186547524F;
  const Value share = 6.0F / (u + 3.0F);  // 1 − t
  const Value t = 1.0F - share;
  Value q = M::set(-5.38097993e-05F);
  q = M::fma(q, t, M::set(-7.97401444e-05F));
  q = M::fma(q, t, M::set(0.000513543142F));
  q = M::fma(q, t, M::set(-0.000204826763F));
  q = M::fma(q, t, M::set(-0.00447345991F));
  q = M::fma(q, t, M::set(0.0199215841F));
  q = M::fma(q, t, M::set(-0.0517443083F));
  q = M::fma(q, t, M::set(0.0983713791F));
  q = M::fma(q, t, M::set(-0.147232413F));
  q = M::fma(q, t, M::set(0.179001153F));
  const Value e = M::exp(in * in * -0.5F);
  const Value tail = 0.5F * e * share * q;
  return {M::select(in < M::set(0.0F), tail, 1.0F - tail), e * 0.398942280401432678F};
}

/// x · Φ(x)
struct ExactGelu {
  template <class M>
  ZF_FORMULA static typename M::Value value(typename M::Value x) {
    return x * normal<M>(x).distribution;
  }

  template <class M>
  ZF_FORMULA static typename M::Value slope(typename M::Value x) {
    const Normal<M> at = normal<M>(x);
    return M::fma(bounded<M>(x), at.density, at.distribution);
  }
};

/// x / 2 · (1 + tanh(v)) = x · sigmoid(2v), with 2v = a · x · (1 + b · x²).
struct TanhGelu {
  static constexpr float kA = 1.59576912160573071F;  // 2 · sqrt(2 / π)
  static constexpr float kB = 0.044715F;

  template <class M>
  ZF_FORMULA static typename M::Value gate(typename M::Value in) {
    return sigmoid<M>(kA * in * M::fma(kB * in, in, M::set(1.0F)));
  }

  template <class M>
  ZF_FORMULA static typename M::Value value(typename M::Value x) {
    return x * gate<M>(bounded<M>(x));
  }

  template <class M>
  ZF_FORMULA static typename M::Value slope(typename M::Value x) {
    using Value = typename M::Value;
    const Value in = bounded<M>(x), s = gate<M>(in);
    const Value inner = kA * M::fma(3.0F * kB * in, in, M::set(1.0F));  // the slope of 2v
    return M::fma(in * s * (1.0F - s), inner, s);
  }
};

}  // namespace zerofleet
