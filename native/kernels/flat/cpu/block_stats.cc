#include "kernels/flat/simd/block_stats.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/flat/block_stats.h"
#include "kernels/flat/cpu/tiles.h"

namespace zerofleet::cpu {

void block_stats(const Context& context, std::span<const std::byte> values, DType dtype, std::int64_t block_numel,
                 std::span<double> sum_squares, std::span<float> max_abs) {
  const auto stats_of = ZF_PICK_KERNEL(context.cpu_isa, stats_of_block);
  const auto num_blocks = static_cast<std::int64_t>(sum_squares.size());
  const std::int64_t blocks_per_task = std::max<std::int64_t>(1, kTileNumel / block_numel);
  const std::size_t block_bytes = static_cast<std::size_t>(block_numel) * size_of(dtype);
  context.pool->parallel_for((num_blocks + blocks_per_task - 1) / blocks_per_task, [&](std::int64_t task, int) {
    const std::int64_t begin = task * blocks_per_task, end = std::min(begin + blocks_per_task, num_blocks);
    for (auto block = static_cast<std::size_t>(begin); block < static_cast<std::size_t>(end); ++block) {
      const BlockStats stats = stats_of(values.data() + block * block_bytes, dtype, block_numel);
      sum_squares[block] = stats.sum_squares;
      max_abs[block] = stats.max_abs;
    }
  });
}

}  // namespace zerofleet::cpu
