#include "kernels/cpu/simd/block_stats.h"

#include <algorithm>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa_dispatch.h"

namespace zerofleet::cpu {

void block_sum_squares(const Context& context, std::span<const float> values, std::int64_t block_numel,
                       std::span<double> sums) {
  const auto sum_of = ZF_PICK_KERNEL(context.cpu_isa, sum_squares);
  const auto num_blocks = static_cast<std::int64_t>(sums.size());
  const std::int64_t blocks_per_task = std::max<std::int64_t>(1, kTileNumel / block_numel);
  context.pool->parallel_for((num_blocks + blocks_per_task - 1) / blocks_per_task, [&](std::int64_t task, int) {
    const std::int64_t begin = task * blocks_per_task, end = std::min(begin + blocks_per_task, num_blocks);
    for (std::int64_t block = begin; block < end; ++block) {
      sums[static_cast<std::size_t>(block)] = sum_of(values.data() + block * block_numel, block_numel);
    }
  });
}

}  // namespace zerofleet::cpu
