// Soft cap: 16 bytes of each matrix a thread, one pass over memory.
#include "core/device/context.h"
#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/common/formulas/soft_cap.h"
#include "kernels/elementwise/soft_cap.h"

namespace zerofleet::cuda {
namespace {

template <class T>
__global__ void __launch_bounds__(kSweepThreads)
    soft_cap_kernel(const Sweep<kWidth<T>> sweep, float cap, const Rows<const T> x, const Rows<T> y) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const Lanes<N> in = load(x.row(row), at);
    store(y.row(row), at, lanes<N>([&](int k) { return soft_capped<FloatArithmetic>(in.v[k], cap); }));
  });
}

}  // namespace

void soft_cap(const Context& ctx, float cap, const ConstMatrix& x, const Matrix& y) {
  const Stream& stream = stream_of(ctx);
  with_element(x.dtype, [&]<class T>(T*) {
    const Sweep<kWidth<T>> sweep(x.rows, x.cols, rows_aligned_for<kWidth<T>>(x, y));
    if (sweep.empty()) return;
    launch("soft_cap", stream, {sweep.num_blocks(), kSweepThreads}, soft_cap_kernel<T>, sweep, cap, rows_of<T>(x),
           rows_of<T>(y));
  });
}

}  // namespace zerofleet::cuda
