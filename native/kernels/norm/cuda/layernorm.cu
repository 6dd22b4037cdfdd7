// LayerNorm: a team of threads per row, three times over the row, so that a large mean costs no accuracy; it stays in
// the caches between the passes.
#include "kernels/common/cuda/column_sums.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/norm/cuda/launch.h"
#include "kernels/norm/cuda/norm_rows.cuh"
#include "kernels/norm/layernorm.h"

namespace zerofleet::cuda {
namespace {

template <class T>
struct LayerNormForwardRows : NormForward<T> {
  const T* bias;
  float* mean;
};

template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) layernorm_kernel(const LayerNormForwardRows<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  float values = 0;
  a.template sweep_sums<Team>(row, [&](const Lanes<N>& s) {
#pragma unroll
    for (int k = 0; k < N; ++k) values = values + s.v[k];
  });
  const float mean = Team::sum(values) / static_cast<float>(a.cols);
  const T* sums = a.sums(row);
  float squares = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> s = load(sums, at, mean);  // beyond the row nothing is left without the mean
#pragma unroll
    for (int k = 0; k < N; ++k) squares = fmaf(s.v[k] - mean, s.v[k] - mean, squares);
  });
  const float rstd = a.template rstd_of<Team>(squares);
  if (Team::is_first()) {
    a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
  T* y = a.y.row(row);
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> s = load(sums, at), weight = load(a.weight, at), bias = load(a.bias, at);
    store(y, at, lanes<N>([&](int k) { return fmaf((s.v[k] - mean) * rstd, weight.v[k], bias.v[k]); }));
  });
}

template <class T>
struct LayerNormBackwardRows : NormBackward<T> {
  const float* mean;
};

// For x̂ = (x − mean) · rstd and g = dy · weight: dx = rstd · (g − mean(g) − x̂ · mean(g · x̂)).
template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) layernorm_backward_kernel(const LayerNormBackwardRows<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  const T *dy = a.dy.row(row), *x = a.x.row(row);
  const float mean = a.mean[row], rstd = a.rstd[row];
  float grads = 0, products = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    // dy is zero beyond the row, so the value of x̂ there does not matter.
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
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
    const Lanes<N> grad = lanes<N>(
        [&](int k) { return rstd * (d.v[k] * weight.v[k] - mean_grad - (s.v[k] - mean) * rstd * mean_product); });
    a.store_gradient(row, at, grad);
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
    const LayerNormForwardRows<T> a{norm_forward_of<T>(args, aligned_for<kWidth<T>>(args.bias, args.x.dtype)),
                                    static_cast<const T*>(args.bias), args.mean.data()};
    with_row_team(args.x.cols, [&]<class Team>(Team) {
      launch("layernorm", stream, {num_blocks_for(a.rows, Team::kRowsPerBlock), kRowThreads}, layernorm_kernel<T, Team>,
             a);
    });
  });
}

void layernorm_backward(const Context& ctx, const LayerNormBackward& args) {
  const Stream& stream = stream_of(ctx);
  with_element(args.x.dtype, [&]<class T>(T*) {
    const WeightTerms<T> terms{rows_of<T>(args.dy), rows_of<T>(args.x), args.mean.data(), args.rstd.data()};
    // First, because dx may lie over the residual, but not over dy or x.
    column_sums(ctx, "layernorm_backward", terms,
                {args.x.rows, args.x.cols, rows_aligned_for<kColumnWidth>(args.dy, args.x)},
                {args.dweight.data(), args.dbias.data()});
    if (args.x.rows == 0) return;
    const LayerNormBackwardRows<T> a{norm_backward_of<T>(args), args.mean.data()};
    with_row_team(args.x.cols, [&]<class Team>(Team) {
      launch("layernorm_backward", stream, {num_blocks_for(a.rows, Team::kRowsPerBlock), kRowThreads},
             layernorm_backward_kernel<T, Team>, a);
    });
  });
}

}  // namespace zerofleet::cuda
