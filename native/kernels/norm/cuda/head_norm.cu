// The RMS norm of heads: a team of threads per head of a row, a warp for the usual sizes.
#include "kernels/common/cuda/column_sums.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/norm/cuda/launch.h"
#include "kernels/norm/head_norm.h"

namespace zerofleet::cuda {
namespace {

constexpr int kHeadWidth = 4;  // elements of an access: 128, a usual head, fill a warp

template <class T>
struct HeadNormForwardRows {
  Rows<const T> x;
  Rows<T> y;
  const T* weight;
  float* rstd;  // (H, M)
  std::int64_t rows, heads, dim;
  float eps;
  bool aligned;
};

template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) head_norm_kernel(const HeadNormForwardRows<T> a) {
  const std::int64_t row = Team::row() / a.heads, head = Team::row() % a.heads;
  if (row >= a.rows) return;
  const T* x = a.x.row(row) + head * a.dim;
  float squares = 0;
  Team::template sweep<kHeadWidth>(a.dim, a.aligned, [&](const Columns<kHeadWidth>& at) {
    const Lanes<kHeadWidth> s = load(x, at);
#pragma unroll
    for (int k = 0; k < kHeadWidth; ++k) squares = fmaf(s.v[k], s.v[k], squares);
  });
  const float rstd = 1.0F / sqrtf(Team::sum(squares) / static_cast<float>(a.dim) + a.eps);
  if (Team::is_first()) a.rstd[head * a.rows + row] = rstd;
  T* y = a.y.row(row) + head * a.dim;
  Team::template sweep<kHeadWidth>(a.dim, a.aligned, [&](const Columns<kHeadWidth>& at) {
    const Lanes<kHeadWidth> s = load(x, at), weight = load(a.weight, at);
    store(y, at, lanes<kHeadWidth>([&](int k) { return s.v[k] * rstd * weight.v[k]; }));
  });
}

template <class T>
struct HeadNormBackwardRows {
  Rows<const T> dy, x;
  Rows<T> dx;
  const T* weight;
  const float* rstd;
  std::int64_t rows, heads, dim;
  bool aligned;
};

// For x̂ = x · rstd and g = dy · weight: dx = rstd · (g − x̂ · mean(g · x̂)). dx may be dy: each thread writes only
// elements that it alone has read.
template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) head_norm_backward_kernel(const HeadNormBackwardRows<T> a) {
  const std::int64_t row = Team::row() / a.heads, head = Team::row() % a.heads;
  if (row >= a.rows) return;
  const T *dy = a.dy.row(row) + head * a.dim, *x = a.x.row(row) + head * a.dim;
  const float rstd = a.rstd[head * a.rows + row];
  float products = 0;
  Team::template sweep<kHeadWidth>(a.dim, a.aligned, [&](const Columns<kHeadWidth>& at) {
    const Lanes<kHeadWidth> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
#pragma unroll
    for (int k = 0; k < kHeadWidth; ++k) products = fmaf(d.v[k] * weight.v[k], s.v[k] * rstd, products);
  });
  const float mean = Team::sum(products) / static_cast<float>(a.dim);
  T* dx = a.dx.row(row) + head * a.dim;
  Team::template sweep<kHeadWidth>(a.dim, a.aligned, [&](const Columns<kHeadWidth>& at) {
    const Lanes<kHeadWidth> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
    store(dx, at, lanes<kHeadWidth>([&](int k) { return rstd * (d.v[k] * weight.v[k] - s.v[k] * rstd * mean); }));
  });
}

/// dy · x̂ of one head
template <class T>
struct HeadWeightTerm {
  static constexpr int kSums = 1;
  Rows<const T> dy, x;
  const float* rstd;
  std::int64_t rows;

  __device__ void add(std::int64_t row, std::int64_t head, const SumColumns& at, SumLanes (&total)[kSums]) const {
    const SumLanes d = load(dy.row(row), at), s = load(x.row(row), at);
    const float factor = rstd[head * rows + row];
    total[0] = lanes<kColumnWidth>([&](int k) { return fmaf(d.v[k], s.v[k] * factor, total[0].v[k]); });
  }
};

}  // namespace

void head_norm(const Context& ctx, const HeadNormForward& args) {
  const Stream& stream = stream_of(ctx);
  const std::int64_t heads = args.x.cols / args.head_dim;
  if (args.x.rows * heads == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    const bool aligned = rows_aligned_for<kHeadWidth>(args.x, args.y) &&
                         aligned_for<kHeadWidth>(args.weight, args.x.dtype) && args.head_dim % kHeadWidth == 0;
    const HeadNormForwardRows<T> a{rows_of<T>(args.x),
                                   rows_of<T>(args.y),
                                   static_cast<const T*>(args.weight),
                                   args.rstd.data(),
                                   args.x.rows,
                                   heads,
                                   args.head_dim,
                                   static_cast<float>(args.eps),
                                   aligned};
    with_row_team(args.head_dim, [&]<class Team>(Team) {
      const unsigned blocks = num_blocks_for(a.rows * heads, Team::kRowsPerBlock);
      launch("head_norm", stream, {blocks, kRowThreads}, head_norm_kernel<T, Team>, a);
    });
  });
}

void head_norm_backward(const Context& ctx, const HeadNormBackward& args) {
  const Stream& stream = stream_of(ctx);
  const std::int64_t heads = args.x.cols / args.head_dim, rows = args.x.rows;
  with_element(args.x.dtype, [&]<class T>(T*) {
    // First, because dx may lie over dy.
    const bool sums_aligned = rows_aligned_for<kColumnWidth>(args.dy, args.x) && args.head_dim % kColumnWidth == 0;
    column_sums(
        ctx, "head_norm_backward", HeadWeightTerm<T>{rows_of<T>(args.dy), rows_of<T>(args.x), args.rstd.data(), rows},
        {heads == 0 ? 0 : rows, args.head_dim, sums_aligned, std::max<std::int64_t>(1, heads)}, {args.dweight.data()});
    if (rows * heads == 0) return;
    const bool aligned = rows_aligned_for<kHeadWidth>(args.dy, args.x, args.dx) &&
                         aligned_for<kHeadWidth>(args.weight, args.x.dtype) && args.head_dim % kHeadWidth == 0;
    const HeadNormBackwardRows<T> a{rows_of<T>(args.dy),
                                    rows_of<T>(args.x),
                                    rows_of<T>(args.dx),
                                    static_cast<const T*>(args.weight),
                                    args.rstd.data(),
                                    rows,
                                    heads,
                                    args.head_dim,
                                    aligned};
    with_row_team(args.head_dim, [&]<class Team>(Team) {
      const unsigned blocks = num_blocks_for(rows * heads, Team::kRowsPerBlock);
      launch("head_norm_backward", stream, {blocks, kRowThreads}, head_norm_backward_kernel<T, Team>, a);
    });
  });
}

}  // namespace zerofleet::cuda
