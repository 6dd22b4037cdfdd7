#include "kernels/optimizer/simd/adamw.h"

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/optimizer/cpu/launch.h"
#include "kernels/optimizer/cpu/optimizer_tiles.h"

namespace zerofleet::cpu {

void adamw(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
           std::span<const AdamWScalars> groups) {
  const auto update = ZF_PICK_KERNEL(context.cpu_isa, adamw_tile);
  for_each_optimizer_tile(context, segments, dtypes, {}, [&](const OptimizerTile& tile, const TileOrigin& origin) {
    update(tile, groups[segments[origin.segment].group]);
  });
}

}  // namespace zerofleet::cpu
