#include "kernels/norm/simd/rmsnorm.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
void forward(const RmsNormArgs& args) {
  const T* weights = static_cast<const T*>(args.weight);
  const auto weight = [&](int64_t i, auto part) { return load(weights + i, part) + set1(args.weight_offset); };
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* x = row_of<T>(args.x, row);
    vf squares = zero();
    if (args.delta.data != nullptr) {
      const T* delta = row_of<T>(args.delta, row);
      T* sum = row_of<T>(args.sum, row);
      sweep(args.cols, [&](int64_t i, auto part) {
        store(sum + i, load(x + i, part) + load(delta + i, part), part);
        const vf rounded = load(sum + i, part);
        squares = fma(rounded, rounded, squares);
      });
      x = sum;
    } else {
      sweep(args.cols, [&](int64_t i, auto part) {
        const vf value = load(x + i, part);
        squares = fma(value, value, squares);
      });
    }
    const float rstd = 1.0F / __builtin_sqrtf(sum_lanes(squares) / static_cast<float>(args.cols) + args.eps);
    args.rstd[row] = rstd;
    T* y = row_of<T>(args.y, row);
    sweep(args.cols,
          [&](int64_t i, auto part) { store(y + i, load(x + i, part) * set1(rstd) * weight(i, part), part); });
  }
}

// For x̂ = x · rstd and g = dy · weight: dx = rstd · (g − x̂ · mean(g · x̂)), dweight = Σ over rows of dy · x̂.
template <class T, bool kSums>
void backward(const RmsNormBackwardArgs& args) {
  const T* weights = static_cast<const T*>(args.weight);
  const auto weight = [&](int64_t i, auto part) { return load(weights + i, part) + set1(args.weight_offset); };
  if constexpr (kSums) sweep(args.cols, [&](int64_t i, auto part) { store(args.dweight + i, zero(), part); });
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* dy = row_of<T>(args.dy, row);
    const T* x = row_of<T>(args.x, row);
    const T* residual = row_of<T>(args.residual, row);
    T* dx = row_of<T>(args.dx, row);
    const vf rstd = set1(args.rstd[row]);
    vf products = zero();
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf grad = load(dy + i, part), normed = load(x + i, part) * rstd;
      products = fma(grad * weight(i, part), normed, products);
      if constexpr (kSums) store(args.dweight + i, fma(grad, normed, load(args.dweight + i, part)), part);
    });
    const vf mean = set1(sum_lanes(products) / static_cast<float>(args.cols));
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf normed = load(x + i, part) * rstd;
      const vf grad = rstd * (load(dy + i, part) * weight(i, part) - normed * mean);
      store(dx + i, residual == nullptr ? grad : load(residual + i, part) + grad, part);
    });
  }
}

}  // namespace

void rmsnorm_rows(const RmsNormArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { forward<T>(args); });
}

void rmsnorm_backward_rows(const RmsNormBackwardArgs& args) {
  with_model_element(
      args.dtype, [&]<class T>(T*) { args.dweight != nullptr ? backward<T, true>(args) : backward<T, false>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
