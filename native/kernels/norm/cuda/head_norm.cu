// The RMS norm of heads: a team of threads per head of a row, a warp for the usual sizes.
#include "core/device/context.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/norm/cuda/norm_backward.h"
#include "kernels/norm/head_norm.h"

namespace zerofleet::cuda {
namespace {

constexpr int kHeadWidth = 4;  // elements of an access: 128, a usual head, fill a warp

template <class T>
struct HeadNormForwardRows {
  Rows<const T> x;
  Rows<T> y;
  const T* weight;
  float weight_offset;
  float* rstd;  // (H, M)
  std::int64_t rows, heads, dim;
  float eps;
  bool aligned;
};

template <class T, class Row>
__global__ void __launch_bounds__(kRowThreads) head_norm_kernel(const HeadNormForwardRows<T> a) {
  using Team = typename Row::Team;
  const std::int64_t row = Team::row() / a.heads, head = Team::row() % a.heads;
  if (row >= a.rows) return;
  const T* x = a.x.row(row) + head * a.dim;
  Lanes<kHeadWidth> held[1] = {};
  float squares = 0;
  Row::sweep(a.dim, a.aligned, [&](int, const Columns<kHeadWidth>& at) {
    const Lanes<kHeadWidth> s = load(x, at);
    if constexpr (Row::kHeld > 0) held[0] = s;
#pragma unroll
    for (int k = 0; k < kHeadWidth; ++k) squares = fmaf(s.v[k], s.v[k], squares);
  });
  const float rstd = 1.0F / sqrtf(Team::sum(squares) / static_cast<float>(a.dim) + a.eps);
  if (Team::is_first()) a.rstd[head * a.rows + row] = rstd;
  T* y = a.y.row(row) + head * a.dim;
  Row::sweep(a.dim, a.aligned, [&](int, const Columns<kHeadWidth>& at) {
    const Lanes<kHeadWidth> s = Row::kHeld > 0 ? held[0] : load(x, at), weight = load(a.weight, at);
    store(y, at, lanes<kHeadWidth>([&](int k) { return s.v[k] * rstd * (weight.v[k] + a.weight_offset); }));
  });
}

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
                                   static_cast<float>(args.weight_offset),
                                   args.rstd.data(),
                                   args.x.rows,
                                   heads,
                                   args.head_dim,
                                   static_cast<float>(args.eps),
                                   aligned};
    with_row<kHeadWidth, kHeadWidth>(args.head_dim, aligned, [&]<class Row>(Row) {
      const unsigned blocks = num_blocks_for(a.rows * heads, Row::Team::kRowsPerBlock);
      launch("head_norm", stream, {blocks, kRowThreads}, head_norm_kernel<T, Row>, a);
    });
  });
}

void head_norm_backward(const Context& ctx, const HeadNormBackward& args) {
  NormBackward backward;
  backward.dy = args.dy;
  backward.x = args.x;
  backward.weight = args.weight;
  backward.weight_offset = args.weight_offset;
  backward.rstd = args.rstd.data();
  backward.dx = args.dx;
  backward.cols = args.head_dim;
  backward.dweight = args.dweight.data();
  norm_backward(ctx, "head_norm_backward", backward);
}

}  // namespace zerofleet::cuda
