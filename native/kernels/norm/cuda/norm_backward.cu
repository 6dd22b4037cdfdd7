// The backward of norms in one pass over dy and x: a block takes some consecutive rows, a team of its threads one row
// at a time. A thread has the same columns of each row, so that it adds up their parts of dweight and dbias in
// registers. The thread holds its part of a row until the sums over that row are known. While the sums are made, the
// next row is on its way. A block's sums are a part, and parts are added up by fold_columns(). Their number depends on
// the shape alone.
//
// Rows that are wider than 8192 elements, not aligned, or of parts of accesses take three passes: sums over columns,
// then a team per row, twice over it.
#include <algorithm>

#include "kernels/common/cuda/column_sums.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/norm/cuda/norm_backward.h"
#include "kernels/norm/cuda/norm_pass.cuh"

namespace zerofleet::cuda {
namespace {

constexpr std::int64_t kPartsOfBlock = 128;  // of all rows at most, for each block that a multiprocessor has room for
constexpr std::int64_t kMinRowsOfTeam = 4;   // else sums of parts would cost more than they are worth

/// Blocks of kPassThreads on a multiprocessor.
template <class T, bool kCentred>
constexpr int kBlocksAtOnce = sizeof(T) == 4 ? 2
                              : kCentred     ? 3
                                             : 4;

template <class T, bool kCentred, class Shape>
__global__ void __launch_bounds__(kPassThreads, kBlocksAtOnce<T, kCentred>)
    norm_backward_kernel(const BackwardRows<T> a, std::int64_t rows_of_part, const SumArrays<kCentred ? 2 : 1> parts) {
  OnePass<T, kCentred, Shape>{a}.run(rows_of_part, parts);
}

template <class T, bool kCentred, class Shape>
__global__ void __launch_bounds__(kWidePassThreads, 1)
    wide_norm_backward_kernel(const BackwardRows<T> a, std::int64_t rows_of_part,
                              const SumArrays<kCentred ? 2 : 1> parts) {
  OnePass<T, kCentred, Shape>{a}.run(rows_of_part, parts);
}

/// A team per row, twice over the row.
template <class T, bool kCentred, class Team>
__global__ void __launch_bounds__(kRowThreads) looped_norm_backward_kernel(const BackwardRows<T> a) {
  constexpr int N = kWidth<T>;
  const std::int64_t index = Team::row();
  if (index >= a.rows) return;
  const auto position = a.position(index);
  const T *dy = a.dy.row(position.row) + position.first, *x = a.x.row(position.row) + position.first;
  const float mean = kCentred ? a.mean[position.stat] : 0.0F, rstd = a.rstd[position.stat];
  float grads = 0, products = 0;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    // dy is zero beyond the row, so the value of x̂ there does not matter.
    const Lanes<N> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float grad = d.v[k] * (weight.v[k] + a.weight_offset);
      if constexpr (kCentred) grads = grads + grad;
      products = fmaf(grad, normed<kCentred>(s.v[k], mean, rstd), products);
    }
  });
  const float mean_grad = kCentred ? Team::sum(grads) / static_cast<float>(a.cols) : 0.0F;
  const float mean_product = Team::sum(products) / static_cast<float>(a.cols);
  T* dx = a.dx.row(position.row) + position.first;
  const T* residual = a.residual.data == nullptr ? nullptr : a.residual.row(position.row) + position.first;
  Team::template sweep<N>(a.cols, a.aligned, [&](const Columns<N>& at) {
    const Lanes<N> d = load(dy, at), weight = load(a.weight, at), s = load(x, at);
    Lanes<N> grad = lanes<N>([&](int k) {
      return gradient<kCentred>(d.v[k] * (weight.v[k] + a.weight_offset), normed<kCentred>(s.v[k], mean, rstd), rstd,
                                mean_grad, mean_product);
    });
    if (residual != nullptr) {
      const Lanes<N> before = load(residual, at);
      grad = lanes<N>([&](int k) { return before.v[k] + grad.v[k]; });
    }
    store(dx, at, grad);
  });
}

/// dy · x̂ for the weights, dy for the biases.
template <class T, bool kCentred>
struct WeightTerms {
  static constexpr int kSums = kCentred ? 2 : 1;
  Rows<const T> dy, x;
  const float *mean, *rstd;
  std::int64_t rows;

  __device__ void add(std::int64_t row, std::int64_t head, const SumColumns& at, SumLanes (&total)[kSums]) const {
    const SumLanes d = load(dy.row(row), at), s = load(x.row(row), at);
    const float centre = kCentred ? mean[head * rows + row] : 0.0F, factor = rstd[head * rows + row];
    total[0] = lanes<kColumnWidth>(
        [&](int k) { return fmaf(d.v[k], normed<kCentred>(s.v[k], centre, factor), total[0].v[k]); });
    if constexpr (kCentred) total[1] = lanes<kColumnWidth>([&](int k) { return total[1].v[k] + d.v[k]; });
  }
};

/// A backward with its launch.
template <class T, bool kCentred>
class Launch {
 public:
  static constexpr int kSums = kCentred ? 2 : 1;

  Launch(const Context& ctx, const char* name, const NormBackward& args)
      : ctx_(ctx), name_(name), args_(args), rows_(rows_of_args(args)) {
    SumArrays<2> sums{{args.dweight, args.dbias}};
    std::copy_n(sums.array, kSums, sums_.array);
  }

  void run() const {
    constexpr int N = kWidth<T>;
    const bool in_one_pass = rows_.rows > 0 && rows_.aligned && rows_.cols % N == 0;
    if (in_one_pass && run_one_pass<N>()) return;
    // First, because dx may lie over dy or the residual.
    if (args_.dweight != nullptr) sum_columns();
    if (rows_.rows * rows_.cols == 0) return;
    with_row_team(rows_.cols, [&]<class Team>(Team) {
      launch(name_, stream_of(ctx_), {num_blocks_for(rows_.rows, Team::kRowsPerBlock), kRowThreads},
             looped_norm_backward_kernel<T, kCentred, Team>, rows_);
    });
  }

 private:
  static BackwardRows<T> rows_of_args(const NormBackward& args) {
    constexpr int N = kWidth<T>;
    const std::int64_t heads = args.cols == 0 ? 0 : args.x.cols / args.cols;
    const bool aligned = rows_aligned_for<N>(args.dy, args.x, args.residual, args.dx) &&
                         aligned_for<N>(args.weight, args.x.dtype) && (heads <= 1 || args.cols % N == 0);
    require(args.x.rows * heads <= INT32_MAX, "invalid_argument", "a norm has too many rows for one kernel launch");
    return {rows_of<T>(args.dy),
            rows_of<T>(args.x),
            rows_of<T>(args.residual),
            rows_of<T>(args.dx),
            static_cast<const T*>(args.weight),
            static_cast<float>(args.weight_offset),
            args.mean,
            args.rstd,
            args.x.rows * heads,
            args.cols,
            args.x.rows,
            static_cast<unsigned>(heads),
            aligned};
  }

  /// The narrowest teams that have room for a row. Returns false where none has.
  template <int N>
  bool run_one_pass() const {
    constexpr int kAccesses = 8 / N, kHalf = N / 2;
    const auto fits = [&]<int kTeam, int kWidthOfAccess, int kCount>() {
      return rows_.cols <= std::int64_t{kTeam} * kWidthOfAccess * kCount;
    };
    if (fits.template operator()<32, kHalf, kAccesses>()) return start<PassShape<kPassThreads, 32, kHalf, kAccesses>>();
    if (fits.template operator()<32, N, kAccesses>()) return start<PassShape<kPassThreads, 32, N, kAccesses>>();
    if (fits.template operator()<64, N, kAccesses>()) return start<PassShape<kPassThreads, 64, N, kAccesses>>();
    if (fits.template operator()<128, N, kAccesses>()) return start<PassShape<kPassThreads, 128, N, kAccesses>>();
    if (fits.template operator()<256, N, kAccesses>()) return start<PassShape<kPassThreads, 256, N, kAccesses>>();
    if (fits.template operator()<1024, kHalf, kAccesses>())
      return start<PassShape<kWidePassThreads, 1024, kHalf, kAccesses>>();
    if constexpr (!kCentred || sizeof(T) < 4) {  // else 1024 threads have too few registers
      if (fits.template operator()<1024, N, kAccesses>())
        return start<PassShape<kWidePassThreads, 1024, N, kAccesses>>();
    }
    return false;
  }

  template <class Shape>
  bool start() const {
    constexpr std::int64_t kMaxParts = kPartsOfBlock * kBlocksAtOnce<T, kCentred>;
    const std::int64_t least = Shape::kTeams * kMinRowsOfTeam, even = (rows_.rows + kMaxParts - 1) / kMaxParts;
    const std::int64_t rows_of_part = std::max(least, (even + Shape::kTeams - 1) / Shape::kTeams * Shape::kTeams);
    const unsigned num_parts = num_blocks_for(rows_.rows, rows_of_part);
    const auto launch_pass = [&](const SumArrays<kSums>& parts) {
      const auto kernel = [] {
        if constexpr (Shape::kBlock == kPassThreads)
          return norm_backward_kernel<T, kCentred, Shape>;
        else
          return wide_norm_backward_kernel<T, kCentred, Shape>;
      }();
      launch(name_, stream_of(ctx_), {num_parts, Shape::kBlock}, kernel, rows_, rows_of_part, parts);
    };
    if (num_parts == 1 || args_.dweight == nullptr) {
      launch_pass(sums_);
      return true;
    }
    Temporary<float> memory(ctx_, static_cast<std::size_t>(kSums * num_parts * rows_.cols));
    const SumArrays<kSums> parts = arrays_in<kSums>(memory.data(), num_parts * rows_.cols);
    launch_pass(parts);
    fold_columns(ctx_, name_, parts, num_parts, rows_.cols, sums_);
    return true;
  }

  void sum_columns() const {
    const bool aligned =
        rows_aligned_for<kColumnWidth>(args_.dy, args_.x) && (rows_.heads <= 1 || rows_.cols % kColumnWidth == 0);
    std::array<float*, kSums> sums;
    std::copy_n(sums_.array, kSums, sums.begin());
    column_sums(ctx_, name_, WeightTerms<T, kCentred>{rows_.dy, rows_.x, rows_.mean, rows_.rstd, rows_.matrix_rows},
                {rows_.heads == 0 ? 0 : rows_.matrix_rows, rows_.cols, aligned, std::max<std::int64_t>(1, rows_.heads)},
                sums);
  }

  const Context& ctx_;
  const char* name_;
  const NormBackward& args_;
  BackwardRows<T> rows_;
  SumArrays<kSums> sums_;
};

}  // namespace

void norm_backward(const Context& ctx, const char* name, const NormBackward& args) {
  with_element(args.x.dtype, [&]<class T>(T*) {
    args.mean != nullptr ? Launch<T, true>(ctx, name, args).run() : Launch<T, false>(ctx, name, args).run();
  });
}

}  // namespace zerofleet::cuda
