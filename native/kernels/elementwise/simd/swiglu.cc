#include "kernels/elementwise/simd/swiglu.h"

#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"
#include "kernels/elementwise/formulas/swiglu.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
void forward(const SwigluArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* gate = row_of<T>(args.gate_up, row);
    const T* up = gate + args.cols;
    T* act = row_of<T>(args.act, row);
    sweep(args.cols, [&](int64_t i, auto part) {
      store(act + i, swiglu_of<VectorArithmetic>(load(gate + i, part), load(up + i, part)), part);
    });
  }
}

template <class T>
void backward(const SwigluArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* gate = row_of<T>(args.gate_up, row);
    const T* up = gate + args.cols;
    const T* dact = row_of<T>(args.dact, row);
    T* dgate = row_of<T>(args.dgate_up, row);
    T* dup = dgate + args.cols;
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf g = load(gate + i, part), u = load(up + i, part), d = load(dact + i, part);
      const auto gradients = swiglu_gradients<VectorArithmetic>(g, u, d);
      store(dgate + i, gradients.gate, part);
      store(dup + i, gradients.up, part);
    });
  }
}

}  // namespace

void swiglu_rows(const SwigluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { forward<T>(args); });
}

void swiglu_backward_rows(const SwigluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { backward<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
