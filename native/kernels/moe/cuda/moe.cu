// Rows of experts: gathered, summed up by token, and the gradients of that. Each element is read and written once.
#include "core/device/context.h"
#include "kernels/common/cuda/copy_rows.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/moe/moe.h"

namespace zerofleet::cuda {
namespace {

/// Throws for groups that the host made.
const std::int32_t* on_device(const std::int32_t* numbers, const ExpertGroups& groups) {
  require(numbers != nullptr || groups.num_rows() == 0, "invalid_argument",
          "experts: a kernel on a CUDA device needs the groups there");
  return numbers;
}

/// The pairs of a token and its experts.
struct Pairs {
  const std::int32_t* rows;  // (M, k)
  const float* weights;      // (M, k), or null: 1
  std::int64_t chosen;       // k
};

template <class T>
__global__ void __launch_bounds__(kSweepThreads)
    combine_kernel(const Sweep<kWidth<T>> sweep, const Pairs pairs, const Rows<const T> rows, const Rows<T> y) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t token, const Columns<N>& at) {
    Lanes<N> sum{};
    for (std::int64_t pair = token * pairs.chosen; pair < (token + 1) * pairs.chosen; ++pair) {
      const float weight = pairs.weights == nullptr ? 1.0F : pairs.weights[pair];
      const Lanes<N> x = load(rows.row(pairs.rows[pair]), at);
      sum = lanes<N>([&](int k) { return fmaf(weight, x.v[k], sum.v[k]); });
    }
    store(y.row(token), at, sum);
  });
}

template <class T>
struct CombineBackwardRows {
  Pairs pairs;
  Rows<const T> rows, dy;
  Rows<T> drows;
  float* dweights;
  std::int64_t num_pairs, cols;
  bool aligned;
};

// drows may be rows: each thread writes only elements that it alone has read.
template <class T, class Team>
__global__ void __launch_bounds__(kRowThreads) combine_backward_kernel(const CombineBackwardRows<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t pair = Team::row();
  if (pair >= a.num_pairs) return;
  const std::int64_t index = a.pairs.rows[pair];
  const T *row = a.rows.row(index), *dy = a.dy.row(pair / a.pairs.chosen);
  T* drow = a.drows.row(index);
  const float weight = a.pairs.weights[pair];
  float products = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> d = load(dy, at), x = load(row, at);
#pragma unroll
    for (int k = 0; k < N; ++k) products = fmaf(d.v[k], x.v[k], products);
    store(drow, at, lanes<N>([&](int k) { return weight * d.v[k]; }));
  });
  const float sum = Team::sum(products);
  if (Team::is_first()) a.dweights[pair] = sum;
}

}  // namespace

void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows) {
  copy_rows(ctx, "gather_rows", x, on_device(groups.device_tokens, groups), rows);
}

void sum_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights, const ConstMatrix& rows,
              const Matrix& y) {
  const Stream& stream = stream_of(ctx);
  const Pairs pairs{on_device(groups.device_rows, groups), weights.data(), groups.experts_per_token};
  with_element(y.dtype, [&]<class T>(T*) {
    const Sweep<kWidth<T>> sweep(y.rows, y.cols, rows_aligned_for<kWidth<T>>(rows, y));
    if (sweep.empty()) return;
    launch("sum_rows", stream, {sweep.num_blocks(), kSweepThreads}, combine_kernel<T>, sweep, pairs, rows_of<T>(rows),
           rows_of<T>(y));
  });
}

void combine_rows_backward(const Context& ctx, const CombineBackward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.weights.empty()) return;
  const Pairs pairs{on_device(args.groups->device_rows, *args.groups), args.weights.data(),
                    args.groups->experts_per_token};
  with_element(args.dy.dtype, [&]<class T>(T*) {
    const CombineBackwardRows<T> a{pairs,
                                   rows_of<T>(args.rows),
                                   rows_of<T>(args.dy),
                                   rows_of<T>(args.drows),
                                   args.dweights.data(),
                                   static_cast<std::int64_t>(args.weights.size()),
                                   args.dy.cols,
                                   rows_aligned_for<kWidth<T>>(args.rows, args.dy, args.drows)};
    with_row_team(a.cols, [&]<class Team>(Team) {
      const unsigned blocks = num_blocks_for(a.num_pairs, Team::kRowsPerBlock);
      launch("combine_rows_backward", stream, {blocks, kRowThreads}, combine_backward_kernel<T, Team>, a);
    });
  });
}

}  // namespace zerofleet::cuda
