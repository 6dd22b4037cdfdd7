// RMSNorm: a block of threads per row, twice over the row; it stays in the caches between the passes.
#include "kernels/rmsnorm.h"

#include "kernels/cuda/block_sum.cuh"
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch_grid.cuh"
#include "kernels/cuda/model_launch.h"

namespace zerofleet::cuda {
namespace {

template <class T>
struct Forward {
  Rows<const T> x, delta;
  Rows<T> sum, y;
  const T* weight;
  float* rstd;
  std::int64_t cols;
  float eps;
};

template <class T>
__global__ void __launch_bounds__(kRowThreads) forward_kernel(const Forward<T> a) {
  __shared__ float parts[kRowThreads / 32];
  const std::int64_t row = blockIdx.x;
  const T* x = a.x.row(row);
  float squares = 0;
  for (std::int64_t i = threadIdx.x; i < a.cols; i += kRowThreads) {
    float value = to_float(x[i]);
    if (a.delta.data != nullptr) {
      const T rounded = rounded_to<T>(value + to_float(a.delta.row(row)[i]));
      a.sum.row(row)[i] = rounded;
      value = to_float(rounded);
    }
    squares = squares + value * value;
  }
  const float rstd = 1.0F / sqrtf(block_sum(squares, parts) / static_cast<float>(a.cols) + a.eps);
  if (threadIdx.x == 0) a.rstd[row] = rstd;
  const T* normed = a.delta.data != nullptr ? a.sum.row(row) : x;
  T* y = a.y.row(row);
  // Each thread reads what it has written itself.
  for (std::int64_t i = threadIdx.x; i < a.cols; i += kRowThreads) {
    y[i] = rounded_to<T>(to_float(normed[i]) * rstd * to_float(a.weight[i]));
  }
}

template <class T>
struct Backward {
  Rows<const T> dy, x, residual;
  Rows<T> dx;
  const T* weight;
  const float* rstd;
  std::int64_t cols;
};

// With x̂ = x · rstd and g = dy · weight: dx = rstd · (g − x̂ · mean(g · x̂)).
template <class T>
__global__ void __launch_bounds__(kRowThreads) backward_kernel(const Backward<T> a) {
  __shared__ float parts[kRowThreads / 32];
  const std::int64_t row = blockIdx.x;
  const T *dy = a.dy.row(row), *x = a.x.row(row);
  const float rstd = a.rstd[row];
  float products = 0;
  for (std::int64_t i = threadIdx.x; i < a.cols; i += kRowThreads) {
    products = products + to_float(dy[i]) * to_float(a.weight[i]) * (to_float(x[i]) * rstd);
  }
  const float mean = block_sum(products, parts) / static_cast<float>(a.cols);
  T* dx = a.dx.row(row);
  for (std::int64_t i = threadIdx.x; i < a.cols; i += kRowThreads) {
    const float grad = rstd * (to_float(dy[i]) * to_float(a.weight[i]) - to_float(x[i]) * rstd * mean);
    dx[i] = rounded_to<T>(a.residual.data == nullptr ? grad : to_float(a.residual.row(row)[i]) + grad);
  }
}

/// dy · x̂ of one element.
template <class T>
struct WeightTerm {
  Rows<const T> dy, x;
  const float* rstd;

  __device__ float operator()(std::int64_t row, std::int64_t col) const {
    return to_float(dy.row(row)[col]) * (to_float(x.row(row)[col]) * rstd[row]);
  }
};

}  // namespace

void rmsnorm(const Context& ctx, const RmsNormForward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.x.rows == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    const Forward<T> a{rows_of<T>(args.x),        rows_of<T>(args.delta), rows_of<T>(args.sum),
                       rows_of<T>(args.y),        static_cast<const T*>(args.weight), args.rstd.data(),
                       args.x.cols,               static_cast<float>(args.eps)};
    launch("rmsnorm", stream, {num_blocks_for(args.x.rows, 1), kRowThreads}, forward_kernel<T>, a);
  });
}

void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args) {
  const Stream& stream = stream_of(ctx);
  with_element(args.x.dtype, [&]<class T>(T*) {
    // First, because dx may lie over the residual, but not over dy or x.
    column_sums(ctx, "rmsnorm_backward", WeightTerm<T>{rows_of<T>(args.dy), rows_of<T>(args.x), args.rstd.data()}, args.x.rows,
                args.dweight);
    if (args.x.rows == 0) return;
    const Backward<T> a{rows_of<T>(args.dy), rows_of<T>(args.x),                args.residual.data == nullptr ? Rows<const T>{} : rows_of<T>(args.residual),
                        rows_of<T>(args.dx), static_cast<const T*>(args.weight), args.rstd.data(),
                        args.x.cols};
    launch("rmsnorm_backward", stream, {num_blocks_for(args.x.rows, 1), kRowThreads}, backward_kernel<T>, a);
  });
}

}  // namespace zerofleet::cuda
