// Gated linear units: 16 bytes of each matrix a thread, one pass over memory.
#include "core/device/context.h"
#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/elementwise/formulas/glu.h"
#include "kernels/elementwise/glu.h"

namespace zerofleet::cuda {
namespace {

template <class Glu, class T>
__global__ void __launch_bounds__(kSweepThreads)
    glu_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> gate_up, const Rows<T> act) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const T* gate = gate_up.row(row);
    const Lanes<N> g = load(gate, at), up = load(gate + sweep.cols, at);
    store(act.row(row), at, lanes<N>([&](int k) { return Glu::template value<FloatArithmetic>(g.v[k], up.v[k]); }));
  });
}

template <class Glu, class T>
__global__ void __launch_bounds__(kSweepThreads)
    glu_backward_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> gate_up, const Rows<const T> dact,
                        const Rows<T> dgate_up) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const T* gate = gate_up.row(row);
    const Lanes<N> g = load(gate, at), up = load(gate + sweep.cols, at), d = load(dact.row(row), at);
    Lanes<N> of_gate, of_up;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const auto gradients = Glu::template gradients<FloatArithmetic>(g.v[k], up.v[k], d.v[k]);
      of_gate.v[k] = gradients.gate;
      of_up.v[k] = gradients.up;
    }
    T* dgate = dgate_up.row(row);
    store(dgate, at, of_gate);
    store(dgate + sweep.cols, at, of_up);
  });
}

/// Calls body(glu) with the formula of a kind.
template <class Body>
void with_glu(GluKind kind, const Body& body) {
  if (kind == GluKind::kSilu) return body(Swiglu{});
  body(GegluTanh{});
}

/// Also where the columns of `up` begin.
template <int N>
bool halves_aligned_for(const ConstMatrix& gate_up) {
  return rows_aligned_for<N>(gate_up) && aligned_for<N>(gate_up.at(0, gate_up.cols / 2), gate_up.dtype);
}

}  // namespace

void glu(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const Matrix& act) {
  const Stream& stream = stream_of(ctx);
  with_element(act.dtype, [&]<class T>(T*) {
    constexpr int N = kWidth<T>;
    const Sweep<N> sweep(act.rows, act.cols, halves_aligned_for<N>(gate_up) && rows_aligned_for<N>(act));
    if (sweep.empty()) return;
    with_glu(kind, [&]<class Glu>(Glu) {
      launch("glu", stream, {sweep.num_blocks(), kSweepThreads}, glu_kernel<Glu, T>, sweep, rows_of<T>(gate_up),
             rows_of<T>(act));
    });
  });
}

void glu_backward(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const ConstMatrix& dact,
                  const Matrix& dgate_up) {
  const Stream& stream = stream_of(ctx);
  with_element(dact.dtype, [&]<class T>(T*) {
    constexpr int N = kWidth<T>;
    const bool aligned = halves_aligned_for<N>(gate_up) && halves_aligned_for<N>(dgate_up) && rows_aligned_for<N>(dact);
    const Sweep<N> sweep(dact.rows, dact.cols, aligned);
    if (sweep.empty()) return;
    with_glu(kind, [&]<class Glu>(Glu) {
      launch("glu_backward", stream, {sweep.num_blocks(), kSweepThreads}, glu_backward_kernel<Glu, T>, sweep,
             rows_of<T>(gate_up), rows_of<T>(dact), rows_of<T>(dgate_up));
    });
  });
}

}  // namespace zerofleet::cuda
