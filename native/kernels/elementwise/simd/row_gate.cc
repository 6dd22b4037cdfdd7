#include "kernels/elementwise/simd/row_gate.h"

#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

/// In all lanes.
template <class T>
ZF_INLINE vf sigmoid_of(const T* gate) {
  float value = 0;
  sweep(1, [&](int64_t i, auto part) { value = load(gate + i, part)[0]; });
  return sigmoid<VectorArithmetic>(set1(value));
}

template <class T>
void forward(const RowGateArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const vf factor = sigmoid_of(row_of<T>(args.gate, row));
    const T* x = row_of<T>(args.x, row);
    T* y = row_of<T>(args.y, row);
    sweep(args.cols,
          [&](int64_t i, auto part) { store(y + i, fma(factor, load(x + i, part), load(y + i, part)), part); });
  }
}

template <class T>
void backward(const RowGateArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const vf factor = sigmoid_of(row_of<T>(args.gate, row));
    const T *x = row_of<T>(args.x, row), *dy = row_of<T>(args.dy, row);
    T *dx = row_of<T>(args.dx, row), *dgate = row_of<T>(args.dgate, row);
    vf products = zero();
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf d = load(dy + i, part);
      products = fma(d, load(x + i, part), products);
      store(dx + i, factor * d, part);
    });
    const vf gradient = factor * (1.0F - factor) * sum_lanes(products);
    sweep(1, [&](int64_t i, auto part) { store(dgate + i, gradient, part); });
  }
}

}  // namespace

void add_gated_rows(const RowGateArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { forward<T>(args); });
}

void add_gated_backward_rows(const RowGateArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { backward<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
