// The order of rows that several leaves have for experts, computed where the rows are. The host needs to know how many
// rows there are. No part of the order has to wait for the host's numbers.
#include "core/device/context.h"
#include "kernels/common/cuda/copy_rows.cuh"
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/warp.cuh"
#include "kernels/moe/row_order.h"

namespace zerofleet::cuda {
namespace {

__global__ void __launch_bounds__(kFlatThreads)
    count_kernel(const std::int32_t* first, int num_experts, std::int32_t* counts) {
  const int expert = static_cast<int>(blockIdx.x) * kFlatThreads + static_cast<int>(threadIdx.x);
  if (expert < num_experts) counts[expert] = first[expert + 1] - first[expert];
}

__device__ int sum_of_warp(int mine) {
  for (int half = 16; half >= 1; half /= 2) mine += __shfl_xor_sync(kWholeWarp, mine, half);
  return mine;
}

struct Order {
  std::int32_t *first, *arrived, *wanted;
  int num_rows;
};

// A block for the rows of one leaf and one expert: a run in both orders. Each warp computes its own offset.
__global__ void __launch_bounds__(kFlatThreads)
    order_kernel(const std::int32_t* counts, int num_runs, int num_experts, const Order to) {
  const int run = static_cast<int>(blockIdx.x), leaf = run / num_experts, expert = run % num_experts;
  int before = 0, before_wanted = 0;
  for (int other = lane_of_warp(); other < num_runs; other += 32) {
    const int its_leaf = other / num_experts, its_expert = other % num_experts;
    if (other < run) before += counts[other];
    if (its_expert < expert || (its_expert == expert && its_leaf < leaf)) before_wanted += counts[other];
  }
  before = sum_of_warp(before);
  before_wanted = sum_of_warp(before_wanted);
  const int count = counts[run];
  for (int row = static_cast<int>(threadIdx.x); row < count; row += kFlatThreads) {
    if (before + row >= to.num_rows || before_wanted + row >= to.num_rows) break;  // never, if the counts are correct
    to.arrived[before_wanted + row] = before + row;
    to.wanted[before + row] = before_wanted + row;
  }
  if (threadIdx.x != 0) return;
  if (leaf == 0) to.first[expert] = before_wanted;
  if (run + 1 == num_runs) to.first[num_experts] = before_wanted + count;
}

}  // namespace

void count_rows(const Context& ctx, std::span<const std::int32_t> first, std::span<std::int32_t> counts) {
  const Stream& stream = stream_of(ctx);
  if (counts.empty()) return;
  launch("count_rows", stream, {num_blocks_for(static_cast<std::int64_t>(counts.size()), kFlatThreads), kFlatThreads},
         count_kernel, first.data(), static_cast<int>(counts.size()), counts.data());
}

void order_rows(const Context& ctx, std::span<const std::int32_t> counts, const RowOrder& order) {
  launch("order_rows", stream_of(ctx), {num_blocks_for(static_cast<std::int64_t>(counts.size()), 1), kFlatThreads},
         order_kernel, counts.data(), static_cast<int>(counts.size()), static_cast<int>(order.first.size()) - 1,
         Order{order.first.data(), order.arrived.data(), order.wanted.data(), static_cast<int>(order.wanted.size())});
}

void pick_rows(const Context& ctx, const ConstMatrix& source, std::span<const std::int32_t> numbers,
               const Matrix& target) {
  copy_rows(ctx, "pick_rows", source, numbers.data(), target);
}

}  // namespace zerofleet::cuda
