// Rows times the sigmoid of a number, added to others: 16 bytes of each matrix a thread; and the backward, which has a
// sum over each row.
#include "core/device/context.h"
#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/elementwise/row_gate.h"

namespace zerofleet::cuda {
namespace {

template <class T>
__device__ float sigmoid_of(const Rows<const T>& gate, std::int64_t row) {
  return sigmoid<FloatArithmetic>(widened(*gate.row(row)));
}

template <class T>
__global__ void __launch_bounds__(kSweepThreads)
    add_gated_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> gate, const Rows<const T> x, const Rows<T> y) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const float factor = sigmoid_of(gate, row);
    const Lanes<N> added = load(x.row(row), at), sum = load(y.row(row), at);
    store(y.row(row), at, lanes<N>([&](int k) { return fmaf(factor, added.v[k], sum.v[k]); }));
  });
}

template <class T>
struct GatedBackwardRows {
  Rows<const T> gate, x, dy;
  Rows<T> dx, dgate;
  std::int64_t rows, cols;
  bool aligned;
};

template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) add_gated_backward_kernel(const GatedBackwardRows<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  const float factor = sigmoid_of(a.gate, row);
  float products = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> d = load(a.dy.row(row), at), x = load(a.x.row(row), at);
#pragma unroll
    for (int k = 0; k < N; ++k) products = fmaf(d.v[k], x.v[k], products);
    store(a.dx.row(row), at, lanes<N>([&](int k) { return factor * d.v[k]; }));
  });
  const float sum = Team::sum(products);
  if (Team::is_first()) *a.dgate.row(row) = narrowed<T>(factor * (1.0F - factor) * sum);
}

}  // namespace

void add_gated(const Context& ctx, const ConstMatrix& gate, const ConstMatrix& x, const Matrix& y) {
  const Stream& stream = stream_of(ctx);
  with_element(x.dtype, [&]<class T>(T*) {
    const Sweep<kWidth<T>> sweep(x.rows, x.cols, rows_aligned_for<kWidth<T>>(x, y));
    if (sweep.empty()) return;
    launch("add_gated", stream, {sweep.num_blocks(), kSweepThreads}, add_gated_kernel<T>, sweep, rows_of<T>(gate),
           rows_of<T>(x), rows_of<T>(y));
  });
}

void add_gated_backward(const Context& ctx, const GatedBackward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.x.rows == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    const GatedBackwardRows<T> a{rows_of<T>(args.gate),
                                 rows_of<T>(args.x),
                                 rows_of<T>(args.dy),
                                 rows_of<T>(args.dx),
                                 rows_of<T>(args.dgate),
                                 args.x.rows,
                                 args.x.cols,
                                 rows_aligned_for<kWidth<T>>(args.x, args.dy, args.dx)};
    with_row_team(a.cols, [&]<class Team>(Team) {
      const unsigned blocks = num_blocks_for(a.rows, Team::kRowsPerBlock);
      launch("add_gated_backward", stream, {blocks, kRowThreads}, add_gated_backward_kernel<T, Team>, a);
    });
  });
}

}  // namespace zerofleet::cuda
