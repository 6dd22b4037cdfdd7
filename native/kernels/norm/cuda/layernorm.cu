// LayerNorm: a team of threads per row. Deviations are from the mean that was computed before, so that a large mean
// costs no accuracy.
#include "core/device/context.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/norm/cuda/norm_backward.h"
#include "kernels/norm/cuda/norm_rows.cuh"
#include "kernels/norm/layernorm.h"

namespace zerofleet::cuda {
namespace {

template <class T>
struct LayerNormForwardRows : NormForward<T> {
  const T* bias;
  float* mean;
};

template <class T, class Row>
__global__ void __launch_bounds__(kRowThreads) layernorm_kernel(const LayerNormForwardRows<T> a) {
  constexpr int N = kWidth<T>;
  using Team = typename Row::Team;
  const std::int64_t row = Team::row();
  if (row >= a.rows) return;
  Held<T, Row> held;
  float values = 0;
  a.template sweep_sums<Row>(row, held, [&](const Lanes<N>& s) {
#pragma unroll
    for (int k = 0; k < N; ++k) values = values + s.v[k];
  });
  const float mean = Team::sum(values) / static_cast<float>(a.cols);
  float squares = 0;
  // Beyond the row nothing is left without the mean.
  a.template sweep_again<Row>(row, held, mean, [&](const Columns<N>&, const Lanes<N>& s) {
#pragma unroll
    for (int k = 0; k < N; ++k) squares = fmaf(s.v[k] - mean, s.v[k] - mean, squares);
  });
  const float rstd = a.template rstd_of<Team>(squares);
  if (Team::is_first()) {
    a.mean[row] = mean;
    a.rstd[row] = rstd;
  }
  T* y = a.y.row(row);
  a.template sweep_again<Row>(row, held, 0, [&](const Columns<N>& at, const Lanes<N>& s) {
    const Lanes<N> weight = load(a.weight, at), bias = load(a.bias, at);
    store(y, at, lanes<N>([&](int k) { return fmaf((s.v[k] - mean) * rstd, weight.v[k], bias.v[k]); }));
  });
}

}  // namespace

void layernorm(const Context& ctx, const LayerNormForward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.x.rows == 0) return;
  with_element(args.x.dtype, [&]<class T>(T*) {
    const LayerNormForwardRows<T> a{norm_forward_of<T>(args, aligned_for<kWidth<T>>(args.bias, args.x.dtype)),
                                    static_cast<const T*>(args.bias), args.mean.data()};
    with_row<kWidth<T>, kHeldElements>(a.cols, a.aligned, [&]<class Row>(Row) {
      launch("layernorm", stream, {num_blocks_for(a.rows, Row::Team::kRowsPerBlock), kRowThreads},
             layernorm_kernel<T, Row>, a);
    });
  });
}

void layernorm_backward(const Context& ctx, const LayerNormBackward& args) {
  NormBackward backward;
  backward.dy = args.dy;
  backward.x = args.x;
  backward.weight = args.weight;
  backward.mean = args.mean.data();
  backward.rstd = args.rstd.data();
  backward.residual = args.residual;
  backward.dx = args.dx;
  backward.cols = args.x.cols;
  backward.dweight = args.dweight.data();
  backward.dbias = args.dbias.data();
  norm_backward(ctx, "layernorm_backward", backward);
}

}  // namespace zerofleet::cuda
