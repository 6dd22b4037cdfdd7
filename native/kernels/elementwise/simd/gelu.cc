#include "kernels/elementwise/simd/gelu.h"

#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/math.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

/// Beyond ±15, Φ and its derivative are 0 or 1 in fp32; inside, no intermediate value leaves its range.
ZF_INLINE vf bounded(vf x) { return min(set1(15.0F), max(set1(-15.0F), x)); }

struct Normal {
  vf distribution;  // Φ(x)
  vf density;       // φ(x) = exp(−x² / 2) / sqrt(2π), the derivative of Φ
};

/// With u = |x| / sqrt(2): Φ(−|x|) = erfc(u) / 2 = exp(−u²) · erfcx(u) / 2, which loses no digits far from 0.
/// erfcx(u) = (1 − t) · q(t), t = (u − 3) / (u + 3); q is the polynomial of degree 9 with the least largest relative
/// error (3e-9) for u up to 15 / sqrt(2), found by weighted least squares against torch.special.erfcx.
ZF_INLINE Normal normal(vf x) {
  const vf in = bounded(x);
  const vf u = max(in, -in) * set1(0.707106781186547524F);
  const vf share = set1(6.0F) / (u + set1(3.0F));  // 1 − t
  const vf t = set1(1.0F) - share;
  vf q = set1(-5.38097993e-05F);
  q = fma(q, t, set1(-7.97401444e-05F));
  q = fma(q, t, set1(0.000513543142F));
  q = fma(q, t, set1(-0.000204826763F));
  q = fma(q, t, set1(-0.00447345991F));
  q = fma(q, t, set1(0.0199215841F));
  q = fma(q, t, set1(-0.0517443083F));
  q = fma(q, t, set1(0.0983713791F));
  q = fma(q, t, set1(-0.147232413F));
  q = fma(q, t, set1(0.179001153F));
  const vf e = exp(in * in * set1(-0.5F));
  const vf tail = set1(0.5F) * e * share * q;
  return {select(in < zero(), tail, set1(1.0F) - tail), e * set1(0.398942280401432678F)};
}

// x / 2 · (1 + tanh(v)) = x · sigmoid(2v), with 2v = a · x · (1 + b · x²).
constexpr float kA = 1.59576912160573071F;  // 2 · sqrt(2 / π)
constexpr float kB = 0.044715F;

ZF_INLINE vf tanh_gate(vf in) { return sigmoid(set1(kA) * in * fma(set1(kB) * in, in, set1(1.0F))); }

/// Stores result(x, dy) for each vector of each row. A forward has no dy and is given x.
template <class T, class Result>
ZF_INLINE void over_rows(const GeluArgs& args, Result result) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* x = static_cast<const T*>(args.x) + row * args.x_stride;
    const T* dy = args.dy == nullptr ? x : static_cast<const T*>(args.dy) + row * args.dy_stride;
    T* y = static_cast<T*>(args.result) + row * args.result_stride;
    sweep(args.cols, [&](int64_t i, auto part) { store(y + i, result(load(x + i, part), load(dy + i, part)), part); });
  }
}

}  // namespace

void gelu_rows(const GeluArgs& args) {
  with_model_element(args.dtype,
                     [&]<class T>(T*) { over_rows<T>(args, [](vf x, vf) { return x * normal(x).distribution; }); });
}

void gelu_backward_rows(const GeluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    over_rows<T>(args, [](vf x, vf dy) {
      const Normal at = normal(x);
      return dy * fma(bounded(x), at.density, at.distribution);
    });
  });
}

void gelu_tanh_rows(const GeluArgs& args) {
  with_model_element(args.dtype,
                     [&]<class T>(T*) { over_rows<T>(args, [](vf x, vf) { return x * tanh_gate(bounded(x)); }); });
}

void gelu_tanh_backward_rows(const GeluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    over_rows<T>(args, [](vf x, vf dy) {
      const vf in = bounded(x), s = tanh_gate(in);
      const vf slope = set1(kA) * fma(set1(3.0F * kB) * in, in, set1(1.0F));  // of 2v
      return dy * fma(in * s * (set1(1.0F) - s), slope, s);
    });
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
