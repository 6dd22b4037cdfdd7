#include "kernels/norm/simd/layernorm.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
void forward(const LayerNormArgs& args) {
  const T* weight = static_cast<const T*>(args.weight);
  const T* bias = static_cast<const T*>(args.bias);
  const auto cols = static_cast<float>(args.cols);
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* x = row_of<T>(args.x, row);
    vf values = zero();
    if (args.delta.data != nullptr) {
      const T* delta = row_of<T>(args.delta, row);
      T* sum = row_of<T>(args.sum, row);
      sweep(args.cols, [&](int64_t i, auto part) {
        store(sum + i, load(x + i, part) + load(delta + i, part), part);
        values += load(sum + i, part);
      });
      x = sum;
    } else {
      sweep(args.cols, [&](int64_t i, auto part) { values += load(x + i, part); });
    }
    const float mean = sum_lanes(values) / cols;
    vf squares = zero();  // of the values minus their mean, so that a large mean costs no accuracy
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf centred = within(load(x + i, part) - set1(mean), part, 0.0F);
      squares = fma(centred, centred, squares);
    });
    const float rstd = 1.0F / __builtin_sqrtf(sum_lanes(squares) / cols + args.eps);
    args.mean[row] = mean;
    args.rstd[row] = rstd;
    T* y = row_of<T>(args.y, row);
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf normed = (load(x + i, part) - set1(mean)) * set1(rstd);
      store(y + i, fma(normed, load(weight + i, part), load(bias + i, part)), part);
    });
  }
}

// For x̂ = (x − mean) · rstd and g = dy · weight: dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)), and over rows dweight
// = Σ dy · x̂, dbias = Σ dy.
template <class T, bool kSums>
void backward(const LayerNormBackwardArgs& args) {
  const T* weight = static_cast<const T*>(args.weight);
  if constexpr (kSums) {
    sweep(args.cols, [&](int64_t i, auto part) {
      store(args.dweight + i, zero(), part);
      store(args.dbias + i, zero(), part);
    });
  }
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* dy = row_of<T>(args.dy, row);
    const T* x = row_of<T>(args.x, row);
    const T* residual = row_of<T>(args.residual, row);
    T* dx = row_of<T>(args.dx, row);
    const vf mean = set1(args.mean[row]), rstd = set1(args.rstd[row]);
    vf grads = zero(), products = zero();
    sweep(args.cols, [&](int64_t i, auto part) {
      // dy is zero beyond the row, so the value of x̂ there does not matter.
      const vf d = load(dy + i, part), normed = (load(x + i, part) - mean) * rstd;
      const vf grad = d * load(weight + i, part);
      grads += grad;
      products = fma(grad, normed, products);
      if constexpr (kSums) {
        store(args.dweight + i, fma(d, normed, load(args.dweight + i, part)), part);
        store(args.dbias + i, load(args.dbias + i, part) + d, part);
      }
    });
    const vf mean_grad = set1(sum_lanes(grads) / static_cast<float>(args.cols));
    const vf mean_product = set1(sum_lanes(products) / static_cast<float>(args.cols));
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf normed = (load(x + i, part) - mean) * rstd;
      const vf grad = rstd * (load(dy + i, part) * load(weight + i, part) - mean_grad - normed * mean_product);
      store(dx + i, residual == nullptr ? grad : load(residual + i, part) + grad, part);
    });
  }
}

}  // namespace

void layernorm_rows(const LayerNormArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { forward<T>(args); });
}

void layernorm_backward_rows(const LayerNormBackwardArgs& args) {
  with_model_element(
      args.dtype, [&]<class T>(T*) { args.dweight != nullptr ? backward<T, true>(args) : backward<T, false>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
