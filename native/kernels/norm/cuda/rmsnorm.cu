// RMSNorm: a team of threads per row.
#include "core/device/context.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/norm/cuda/norm_backward.h"
#include "kernels/norm/cuda/norm_rows.cuh"
#include "kernels/norm/rmsnorm.h"

namespace zerofleet::cuda {
namespace {

template <class T>
struct RmsNormForwardRows : NormForward<T> {
  float weight_offset;
};

template <class T, class Row>
__global__ void __launch_bounds__(kRowThreads) rmsnorm_kernel(const RmsNormForwardRows<T> a) {
  constexpr int N = kWidth<T>;
  using Team = typename Row::Team;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  Held<T, Row> held;
  float squares = 0;
  a.template sweep_sums<Row>(row, held, [&](const Lanes<N>& s) {
#pragma unroll
    for (int k = 0; k < N; ++k) squares = fmaf(s.v[k], s.v[k], squares);
  });
  const float rstd = a.template rstd_of<Team>(squares);
  if (Team::is_first()) a.rstd[row] = rstd;
  T* y = a.y.row(row);
  a.template sweep_again<Row>(row, held, 0, [&](const Columns<N>& at, const Lanes<N>& s) {
    const Lanes<N> weight = load(a.weight, at);
    store(y, at, lanes<N>([&](int k) { return s.v[k] * rstd * (weight.v[k] + a.weight_offset); }));
  });
}

}  // namespace

void rmsnorm(const Context& ctx, const RmsNormForward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.x.rows == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    const RmsNormForwardRows<T> a{norm_forward_of<T>(args), static_cast<float>(args.weight_offset)};
    with_row<kWidth<T>, kHeldElements>(a.cols, a.aligned, [&]<class Row>(Row) {
      launch("rmsnorm", stream, {num_blocks_for(a.rows, Row::Team::kRowsPerBlock), kRowThreads}, rmsnorm_kernel<T, Row>,
             a);
    });
  });
}

void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args) {
  NormBackward backward;
  backward.dy = args.dy;
  backward.x = args.x;
  backward.weight = args.weight;
  backward.weight_offset = args.weight_offset;
  backward.rstd = args.rstd.data();
  backward.residual = args.residual;
  backward.dx = args.dx;
  backward.cols = args.x.cols;
  backward.dweight = args.dweight.data();
  norm_backward(ctx, "rmsnorm_backward", backward);
}

}  // namespace zerofleet::cuda
