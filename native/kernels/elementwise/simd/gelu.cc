#include "kernels/elementwise/simd/gelu.h"

#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"
#include "kernels/elementwise/formulas/gelu.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

/// Stores result(x, dy) for each vector of each row. A forward has no dy and is given x.
template <class T, class Result>
ZF_INLINE void over_rows(const GeluArgs& args, Result result) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* x = row_of<T>(args.x, row);
    const T* dy = args.dy.data == nullptr ? x : row_of<T>(args.dy, row);
    T* y = row_of<T>(args.result, row);
    sweep(args.cols, [&](int64_t i, auto part) { store(y + i, result(load(x + i, part), load(dy + i, part)), part); });
  }
}

template <class Gelu>
ZF_INLINE void forward(const GeluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    over_rows<T>(args, [](vf x, vf) { return Gelu::template value<VectorArithmetic>(x); });
  });
}

template <class Gelu>
ZF_INLINE void backward(const GeluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) {
    over_rows<T>(args, [](vf x, vf dy) { return dy * Gelu::template slope<VectorArithmetic>(x); });
  });
}

}  // namespace

void gelu_rows(const GeluArgs& args) { forward<ExactGelu>(args); }
void gelu_backward_rows(const GeluArgs& args) { backward<ExactGelu>(args); }
void gelu_tanh_rows(const GeluArgs& args) { forward<TanhGelu>(args); }
void gelu_tanh_backward_rows(const GeluArgs& args) { backward<TanhGelu>(args); }

}  // namespace zerofleet::cpu::ZF_ISA_NS
