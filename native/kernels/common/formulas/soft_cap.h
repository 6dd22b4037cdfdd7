#pragma once

#include "core/host_device.h"

namespace zerofleet {

/// Within 3 ulp. Up to 0.625 tanh(x) = x + x³ · p(x²), beyond it 1 − 2 / (e^2x + 1). The polynomial p of degree 4 was
/// found by weighted least squares against numpy.tanh. A NaN stays one.
template <class M>
ZF_FORMULA typename M::Value tanh_of(typename M::Value x) {
  using Value = typename M::Value;
  const Value in = M::min(M::set(15.0F), M::abs(x));  // beyond it 1 in fp32
  const Value square = in * in;
  Value p = M::set(-0.00571704144F);
  p = M::fma(p, square, M::set(0.0206505843F));
  p = M::fma(p, square, M::set(-0.0537434965F));
  p = M::fma(p, square, M::set(0.133314908F));
  p = M::fma(p, square, M::set(-0.333332837F));
  const Value small = M::fma(in * square, p, in), large = 1.0F - 2.0F / (M::exp(in + in) + 1.0F);
  const Value result = M::select(in < M::set(0.625F), small, large);
  return M::select(x < M::set(0.0F), -result, result);
}

/// The soft cap of attention's scores and of logits: y = cap · tanh(x / cap).
template <class M>
ZF_FORMULA typename M::Value soft_capped(typename M::Value x, float cap) {
  return cap * tanh_of<M>(x / cap);
}

/// dy/dx of it, at the result y.
template <class M>
ZF_FORMULA typename M::Value soft_cap_slope(typename M::Value y, float cap) {
  const typename M::Value share = y / cap;
  return 1.0F - share * share;
}

}  // namespace zerofleet
