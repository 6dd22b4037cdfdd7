// Embeddings: rows of the table are copied; their gradients are added up by token. The host, which knows the tokens,
// sorts the positions beforehand. So each distinct token has threads of its own, and no two of them write the same
// element.
#include "core/device/context.h"
#include "kernels/common/cuda/copy_rows.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/embedding/embedding.h"

namespace zerofleet::cuda {
namespace {

constexpr int kTokenThreads = 64;
constexpr int kTokenWidth = 4;  // columns of a thread

/// On the device: of group g are the positions order[starts[g]] to order[starts[g + 1] − 1].
struct Groups {
  const std::int32_t *tokens, *order, *starts;
};

/// A block per token that occurs and kTokenThreads · kTokenWidth columns.
template <class T>
__global__ void __launch_bounds__(kTokenThreads)
    sum_rows_kernel(const Groups groups, const Rows<const T> drows, const Rows<float> dtable, std::int64_t cols,
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
  // A constant, so that the loads of several rows are in progress at once.
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
void embedding_backward(const Context& ctx, const Indices& tokens, const PositionGroups& groups,
                        const ConstMatrix& drows, const Matrix& dtable, bool accumulate) {
  const Stream& stream = stream_of(ctx);
  const Sweep<kTokenWidth> sweep(dtable.rows, dtable.cols, rows_aligned_for<kTokenWidth>(dtable));
  if (sweep.empty()) return;
  if (!accumulate) {
    launch("embedding_backward", stream, {sweep.num_blocks(), kSweepThreads}, clear_kernel, sweep,
           rows_of<float>(dtable));
  }
  if (tokens.empty()) return;
  require(groups.count >= 1 && groups.count <= INT32_MAX && groups.order != nullptr && groups.starts != nullptr,
          "invalid_argument", "embedding_backward: a kernel on a CUDA device needs its positions in groups");
  const Groups on_device{tokens.on_device(), groups.order, groups.starts};
  const unsigned across = num_blocks_across(dtable.cols, kTokenThreads * kTokenWidth);
  const Spread spread{dim3(static_cast<unsigned>(groups.count), across), kTokenThreads};
  with_element(drows.dtype, [&]<class T>(T*) {
    launch("embedding_backward", stream, spread, sum_rows_kernel<T>, on_device, rows_of<T>(drows),
           rows_of<float>(dtable), dtable.cols, accumulate, rows_aligned_for<kTokenWidth>(drows, dtable));
  });
}

}  // namespace zerofleet::cuda
