// LayerNorm: a team of threads per row, three times over the row, so that a large mean costs no accuracy; it stays in
// the caches between the passes.
#include "kernels/cuda/column_sums.cuh"
#include "kernels/cuda/launch_grid.cuh"
#include "kernels/cuda/model_launch.h"
#include "kernels/cuda/row_team.cuh"
#include "kernels/layernorm.h"

namespace zerofleet::cuda {
namespace {

template <class T>
struct Forward {
  Rows<const T> x, delta;
  Rows<T> sum, y;
  const T *weight, *bias;
  float *mean, *rstd;
  std::int64_t rows, cols;
  float eps;
  bool aligned;
};

/// The mean of s = x + delta, which is written to `sum`; without delta of x.
template <class T, class Team>
__device__ float mean_of(const Forward<T>& a, std::int64_t row) {
  constexpr int N = kWidth<T>;
  const T* x = a.x.row(row);
  float values = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    Lanes<N> s = load(x, at);
    if (a.delta.data != nullptr) {
      const Lanes<N> delta = load(a.delta.row(row), at);
      s = lanes<N>([&](int k) { return widened(narrowed<T>(s.v[k] + delta.v[k])); });
      store(a.sum.row(row), at, s);
    }
#pragma unroll
    for (int k = 0; k < N; ++k) values = values + s.v[k];
  });
  return Team::sum(values) / static_cast<float>(a.cols);
}

template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) forward_kernel(const Forward<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  const float mean = mean_of<T, Team>(a, row);
  // Each thread reads what it has written itself.
  const T* x = a.delta.data != nullptr ? a.sum.row(row) : a.x.row(row);
  float squares = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> s = load(x, at, mean);  // beyond the row nothing is left without the mean
#pragma unroll
    for (int k = 0; k < N; ++k) squares = fmaf(s.v[k] - mean, s.v[k] - mean, squares);
  });
  const float rstd = 1.0F / sqrtf(Team::sum(squares) / static_cast<float>(a.cols) + a.eps);
  if (Team::is_first()) {
    a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
  T* y = a.y.row(row);
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> s = load(x, at), weight = load(a.weight, at), bias = load(a.bias, at);
    store(y, at, lanes<N>([&](int k) { return fmaf((s.v[k] - mean) * rstd, weight.v[k], bias.v[k]); }));
  });
}

template <class T>
struct Backward {
  Rows<const T> dy, x, residual;
  Rows<T> dx;
  const T* weight;
  const float *mean, *rstd;
  std::int64_t rows, cols;
  bool aligned;
};

// With x̂ = (x − mean) · rstd and g = dy · weight: dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)).
template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) backward_kernel(const Backward<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  const T *dy = a.dy.row(row), *x = a.x.row(row);
  const float mean = a.mean[row], rstd = a.rstd[row];
  float grads = 0, products = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    // dy is zero beyond the row, so what x̂ is there does not matter.
    const Lanes<N> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float grad = d.v[k] * weight.v[k];
      grads = grads + grad;
      products = fmaf(grad, (s.v[k] - mean) * rstd, products);
    }
  });
  const float mean_grad = Team::sum(grads) / static_cast<float>(a.cols);
  const float mean_product = Team::sum(products) / static_cast<float>(a.cols);
  T* dx = a.dx.row(row);
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
    Lanes<N> grad = lanes<N>(
        [&](int k) { return rstd * (d.v[k] * weight.v[k] - mean_grad - (s.v[k] - mean) * rstd * mean_product); });
    if (a.residual.data != nullptr) {
      const Lanes<N> residual = load(a.residual.row(row), at);
      grad = lanes<N>([&](int k) { return residual.v[k] + grad.v[k]; });
    }
    store(dx, at, grad);
  });
}

/// dy · x̂ for the weights, dy for the biases.
template <class T>
struct WeightTerms {
  static constexpr int kSums = 2;
  Rows<const T> dy, x;
  const float *mean, *rstd;

  __device__ void add(std::int64_t row, std::int64_t, const SumColumns& at, SumLanes (&total)[kSums]) const {
    const SumLanes d = load(dy.row(row), at), s = load(x.row(row), at);
    const float centre = mean[row], factor = rstd[row];
    total[0] = lanes<kColumnWidth>([&](int k) { return fmaf(d.v[k], (s.v[k] - centre) * factor, total[0].v[k]); });
    total[1] = lanes<kColumnWidth>([&](int k) { return total[1].v[k] + d.v[k]; });
  }
};

}  // namespace

void layernorm(const Context& ctx, const LayerNormForward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.x.rows == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    constexpr int N = kWidth<T>;
    const bool aligned = rows_aligned_for<N>(args.x, args.delta, args.sum, args.y) &&
                         aligned_for<N>(args.weight, args.x.dtype) && aligned_for<N>(args.bias, args.x.dtype);
    const Forward<T> a{rows_of<T>(args.x),
                       rows_of<T>(args.delta),
                       rows_of<T>(args.sum),
                       rows_of<T>(args.y),
                       static_cast<const T*>(args.weight),
                       static_cast<const T*>(args.bias),
                       args.mean.data(),
                       args.rstd.data(),
                       args.x.rows,
                       args.x.cols,
                       static_cast<float>(args.eps),
                       aligned};
    with_row_team(args.x.cols, [&]<class Team>(Team) {
      launch("layernorm", stream, {num_blocks_for(a.rows, Team::kRowsPerBlock), kRowThreads}, forward_kernel<T, Team>,
             a);
    });
  });
}

void layernorm_backward(const Context& ctx, const LayerNormBackward& args) {
  const Stream& stream = stream_of(ctx);
  with_element(args.x.dtype, [&]<class T>(T*) {
    constexpr int N = kWidth<T>;
    const WeightTerms<T> terms{rows_of<T>(args.dy), rows_of<T>(args.x), args.mean.data(), args.rstd.data()};
    // First, because dx may lie over the residual, but not over dy or x.
    column_sums(ctx, "layernorm_backward", terms,
                {args.x.rows, args.x.cols, rows_aligned_for<kColumnWidth>(args.dy, args.x)},
                {args.dweight.data(), args.dbias.data()});
    if (args.x.rows == 0) return;
    const bool aligned =
        rows_aligned_for<N>(args.dy, args.x, args.residual, args.dx) && aligned_for<N>(args.weight, args.x.dtype);
    const Backward<T> a{rows_of<T>(args.dy),
                        rows_of<T>(args.x),
                        rows_of<T>(args.residual),
                        rows_of<T>(args.dx),
                        static_cast<const T*>(args.weight),
                        args.mean.data(),
                        args.rstd.data(),
                        args.x.rows,
                        args.x.cols,
                        aligned};
    with_row_team(args.x.cols, [&]<class Team>(Team) {
      launch("layernorm_backward", stream, {num_blocks_for(a.rows, Team::kRowsPerBlock), kRowThreads},
             backward_kernel<T, Team>, a);
    });
  });
}

}  // namespace zerofleet::cuda
