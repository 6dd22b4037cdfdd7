// Embeddings: rows of the table are copied; their gradients are added up by token. The host, which knows the tokens,
// sorts the positions, so that each token that occurs has threads of its own, and no two of them write the same
// element.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/cuda/copy_rows.cuh"
#include "kernels/cuda/launch_grid.cuh"
#include "kernels/cuda/model_launch.h"
#include "kernels/cuda/row_vector.cuh"
#include "kernels/embedding.h"

namespace zerofleet::cuda {
namespace {

constexpr int kTokenThreads = 64;
constexpr int kTokenWidth = 4;  // columns of a thread

/// The positions 0, 1 … sorted by token, equal tokens in rising position; and where in that order a token differs from
/// the one before it, then the end.
struct ByToken {
  explicit ByToken(std::span<const std::int32_t> tokens) : order(tokens.size()) {
    std::iota(order.begin(), order.end(), 0);
    const auto token = [&](std::int32_t position) { return tokens[static_cast<std::size_t>(position)]; };
    std::ranges::stable_sort(order, {}, token);
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (i == 0 || token(order[i]) != token(order[i - 1])) starts.push_back(static_cast<std::int32_t>(i));
    }
    starts.push_back(static_cast<std::int32_t>(order.size()));
  }
  std::vector<std::int32_t> order, starts;
};

/// On the device: of group g are the positions order[starts[g]] to order[starts[g + 1] − 1].
struct Groups {
  const std::int32_t *tokens, *order, *starts;
};

/// A block per token that occurs and kTokenThreads · kTokenWidth columns.
template <class T>
__global__ void __launch_bounds__(kTokenThreads)
    sum_kernel(const Groups groups, const Rows<const T> drows, const Rows<float> dtable, std::int64_t cols,
               bool accumulate, bool aligned) {
  constexpr int N = kTokenWidth;
  const Columns<N> at =
      columns_from<N>((static_cast<std::int64_t>(blockIdx.y) * kTokenThreads + threadIdx.x) * N, cols, aligned);
  if (at.count == 0) return;
  const std::int32_t begin = groups.starts[blockIdx.x], end = groups.starts[blockIdx.x + 1];
  float* target = dtable.row(groups.tokens[groups.order[begin]]);
  Lanes<N> sum = accumulate ? load(target, at) : Lanes<N>{};
  const auto add_rows = [&](const Columns<N>& columns) {
#pragma unroll 8
    for (std::int32_t i = begin; i < end; ++i) {
      const Lanes<N> x = load(drows.row(groups.order[i]), columns);
      sum = lanes<N>([&](int k) { return sum.v[k] + x.v[k]; });
    }
  };
  // As a constant, so that the loads of several rows are under way at once.
  if (at.whole) {
    add_rows({at.first, N, true});
  } else {
    add_rows({at.first, at.count, false});
  }
  store(target, at, sum);
}

/// Rows of tokens that don't occur are zero; the others are written after it.
__global__ void __launch_bounds__(kSweepThreads)
    clear_kernel(const Sweep<kTokenWidth> sweep, const Rows<float> dtable) {
  sweep.of_thread(
      [&](std::int64_t row, const Columns<kTokenWidth>& at) { store(dtable.row(row), at, Lanes<kTokenWidth>{}); });
}

}  // namespace

void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows) {
  copy_rows(ctx, "embedding", table, tokens.on_device(), rows);
}

// The floor: the gradients of the rows once, and the table's gradient once, where it doesn't accumulate whole.
void embedding_backward(const Context& ctx, const Indices& tokens, const ConstMatrix& drows, const Matrix& dtable,
                        bool accumulate) {
  const Stream& stream = stream_of(ctx);
  const Sweep<kTokenWidth> sweep(dtable.rows, dtable.cols, rows_aligned_for<kTokenWidth>(dtable));
  if (sweep.empty()) return;
  if (!accumulate) {
    launch("embedding_backward", stream, {sweep.num_blocks(), kSweepThreads}, clear_kernel, sweep,
           rows_of<float>(dtable));
  }
  if (tokens.empty()) return;
  require(tokens.size() <= INT32_MAX, "invalid_argument", "too many tokens for one kernel launch");
  const ByToken sorted(tokens.host());
  const Uploaded<std::int32_t> order(ctx, sorted.order), starts(ctx, sorted.starts);
  const Groups groups{tokens.on_device(), order.data(), starts.data()};
  const unsigned across = num_blocks_for(dtable.cols, kTokenThreads * kTokenWidth);
  require(across <= 65535, "invalid_argument", "embeddings of too many columns");
  const Spread spread{dim3(static_cast<unsigned>(sorted.starts.size() - 1), across), kTokenThreads};
  with_element(drows.dtype, [&]<class T>(T*) {
    launch("embedding_backward", stream, spread, sum_kernel<T>, groups, rows_of<T>(drows), rows_of<float>(dtable),
           dtable.cols, accumulate, rows_aligned_for<kTokenWidth>(drows, dtable));
  });
}

}  // namespace zerofleet::cuda
