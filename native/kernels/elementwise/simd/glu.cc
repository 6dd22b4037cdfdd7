#include "kernels/elementwise/simd/glu.h"

#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"
#include "kernels/elementwise/formulas/glu.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class Glu, class T>
void forward_as(const GluArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* gate = row_of<T>(args.gate_up, row);
    const T* up = gate + args.cols;
    T* act = row_of<T>(args.act, row);
    sweep(args.cols, [&](int64_t i, auto part) {
      store(act + i, Glu::template value<VectorArithmetic>(load(gate + i, part), load(up + i, part)), part);
    });
  }
}

template <class Glu, class T>
void backward_as(const GluArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* gate = row_of<T>(args.gate_up, row);
    const T* up = gate + args.cols;
    const T* dact = row_of<T>(args.dact, row);
    T* dgate = row_of<T>(args.dgate_up, row);
    T* dup = dgate + args.cols;
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf g = load(gate + i, part), u = load(up + i, part), d = load(dact + i, part);
      const auto gradients = Glu::template gradients<VectorArithmetic>(g, u, d);
      store(dgate + i, gradients.gate, part);
      store(dup + i, gradients.up, part);
    });
  }
}

template <class Glu>
void forward(const GluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { forward_as<Glu, T>(args); });
}

template <class Glu>
void backward(const GluArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { backward_as<Glu, T>(args); });
}

}  // namespace

void swiglu_rows(const GluArgs& args) { forward<Swiglu>(args); }
void swiglu_backward_rows(const GluArgs& args) { backward<Swiglu>(args); }
void geglu_tanh_rows(const GluArgs& args) { forward<GegluTanh>(args); }
void geglu_tanh_backward_rows(const GluArgs& args) { backward<GegluTanh>(args); }

}  // namespace zerofleet::cpu::ZF_ISA_NS
