#include "kernels/optimizer/simd/lamb.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/optimizer/cpu/optimizer_tiles.h"
#include "kernels/optimizer/lamb.h"

namespace zerofleet::cpu {

void lamb_prepare(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                  std::span<const LambScalars> groups, const LambSums& sums) {
  const auto prepare = ZF_PICK_KERNEL(context.cpu_isa, lamb_prepare_tile);
  // A tile is a block, so each has its sums to itself. Only the moments are written.
  const TileAccess access{.writes_master = false, .tile_numel = sums.block_numel};
  for_each_optimizer_tile(context, segments, dtypes, access, [&](const OptimizerTile& tile, const TileOrigin& origin) {
    const LambTileSums block = prepare(tile, groups[segments[origin.segment].group]);
    const auto slot = static_cast<std::size_t>(sums.first_stats[origin.segment] + origin.begin / sums.block_numel);
    sums.weights[slot] = block.weights;
    sums.updates[slot] = block.updates;
  });
}

}  // namespace zerofleet::cpu
