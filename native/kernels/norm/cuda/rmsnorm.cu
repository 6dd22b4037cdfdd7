// RMSNorm: a team of threads per row, twice over the row; it stays in the caches between the passes.
#include "kernels/common/cuda/column_sums.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/norm/cuda/launch.h"
#include "kernels/norm/cuda/norm_rows.cuh"
#include "kernels/norm/rmsnorm.h"

namespace zerofleet::cuda {
namespace {

template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) rmsnorm_kernel(const NormForward<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  float squares = 0;
  a.template sweep_sums<Team>(row, [&](const Lanes<N>& s) {
#pragma unroll
    for (int k = 0; k < N; ++k) squares = fmaf(s.v[k], s.v[k], squares);
  });
  const float rstd = a.template rstd_of<Team>(squares);
  if (Team::is_first()) a.rstd[row] = rstd;
  const T* sums = a.sums(row);
  T* y = a.y.row(row);
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> s = load(sums, at), weight = load(a.weight, at);
    store(y, at, lanes<N>([&](int k) { return s.v[k] * rstd * weight.v[k]; }));
  });
}

// For x̂ = x · rstd and g = dy · weight: dx = rstd · (g − x̂ · mean(g · x̂)).
template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) rmsnorm_backward_kernel(const NormBackward<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  const T *dy = a.dy.row(row), *x = a.x.row(row);
  const float rstd = a.rstd[row];
  float products = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
#pragma unroll
    for (int k = 0; k < N; ++k) products = fmaf(d.v[k] * weight.v[k], s.v[k] * rstd, products);
  });
  const float mean = Team::sum(products) / static_cast<float>(a.cols);
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
    const Lanes<N> grad = lanes<N>([&](int k) { return rstd * (d.v[k] * weight.v[k] - s.v[k] * rstd * mean); });
    a.store_gradient(row, at, grad);
  });
}

/// dy · x̂
template <class T>
struct RowWeightTerm {
  static constexpr int kSums = 1;
  Rows<const T> dy, x;
  const float* rstd;

  __device__ void add(std::int64_t row, std::int64_t, const SumColumns& at, SumLanes (&total)[kSums]) const {
    const SumLanes d = load(dy.row(row), at), s = load(x.row(row), at);
    const float factor = rstd[row];
    total[0] = lanes<kColumnWidth>([&](int k) { return fmaf(d.v[k], s.v[k] * factor, total[0].v[k]); });
  }
};

}  // namespace

void rmsnorm(const Context& ctx, const RmsNormForward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.x.rows == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    const NormForward<T> a = norm_forward_of<T>(args);
    with_row_team(args.x.cols, [&]<class Team>(Team) {
      launch("rmsnorm", stream, {num_blocks_for(a.rows, Team::kRowsPerBlock), kRowThreads}, rmsnorm_kernel<T, Team>, a);
    });
  });
}

// dy and x are read twice, for rows and for columns: (2 + 2 + residual + dx) · M · D elements.
void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args) {
  const Stream& stream = stream_of(ctx);
  with_element(args.x.dtype, [&]<class T>(T*) {
    // First, because dx may lie over the residual, but not over dy or x.
    column_sums(ctx, "rmsnorm_backward", RowWeightTerm<T>{rows_of<T>(args.dy), rows_of<T>(args.x), args.rstd.data()},
                {args.x.rows, args.x.cols, rows_aligned_for<kColumnWidth>(args.dy, args.x)}, {args.dweight.data()});
    if (args.x.rows == 0) return;
    const NormBackward<T> a = norm_backward_of<T>(args);
    with_row_team(args.x.cols, [&]<class Team>(Team) {
      launch("rmsnorm_backward", stream, {num_blocks_for(a.rows, Team::kRowsPerBlock), kRowThreads},
             rmsnorm_backward_kernel<T, Team>, a);
    });
  });
}

}  // namespace zerofleet::cuda
