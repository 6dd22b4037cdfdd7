// GELU: 16 bytes of each matrix a thread, one pass over memory.
#include "core/device/context.h"
#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/elementwise/formulas/gelu.h"
#include "kernels/elementwise/gelu.h"

namespace zerofleet::cuda {
namespace {

template <class Gelu, class T>
__global__ void __launch_bounds__(kSweepThreads)
    gelu_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> x, const Rows<T> y) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const Lanes<N> in = load(x.row(row), at);
    store(y.row(row), at, lanes<N>([&](int k) { return Gelu::template value<FloatArithmetic>(in.v[k]); }));
  });
}

template <class Gelu, class T>
__global__ void __launch_bounds__(kSweepThreads)
    gelu_backward_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> x, const Rows<const T> dy,
                         const Rows<T> dx) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const Lanes<N> in = load(x.row(row), at), d = load(dy.row(row), at);
    store(dx.row(row), at, lanes<N>([&](int k) { return d.v[k] * Gelu::template slope<FloatArithmetic>(in.v[k]); }));
  });
}

}  // namespace

void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y) {
  const Stream& stream = stream_of(ctx);
  with_element(x.dtype, [&]<class T>(T*) {
    const Sweep<kWidth<T>> sweep(x.rows, x.cols, rows_aligned_for<kWidth<T>>(x, y));
    if (sweep.empty()) return;
    const auto kernel = kind == GeluKind::kExact ? gelu_kernel<ExactGelu, T> : gelu_kernel<TanhGelu, T>;
    launch("gelu", stream, {sweep.num_blocks(), kSweepThreads}, kernel, sweep, rows_of<T>(x), rows_of<T>(y));
  });
}

void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx) {
  const Stream& stream = stream_of(ctx);
  with_element(x.dtype, [&]<class T>(T*) {
    const Sweep<kWidth<T>> sweep(x.rows, x.cols, rows_aligned_for<kWidth<T>>(x, dy, dx));
    if (sweep.empty()) return;
    const auto kernel =
        kind == GeluKind::kExact ? gelu_backward_kernel<ExactGelu, T> : gelu_backward_kernel<TanhGelu, T>;
    launch("gelu_backward", stream, {sweep.num_blocks(), kSweepThreads}, kernel, sweep, rows_of<T>(x), rows_of<T>(dy),
           rows_of<T>(dx));
  });
}

}  // namespace zerofleet::cuda
