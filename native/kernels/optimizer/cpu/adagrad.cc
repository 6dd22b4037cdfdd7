#include "kernels/optimizer/simd/adagrad.h"

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/optimizer/cpu/launch.h"
#include "kernels/optimizer/cpu/optimizer_tiles.h"

namespace zerofleet::cpu {

void adagrad(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
             std::span<const AdagradScalars> groups) {
  const auto update = ZF_PICK_KERNEL(context.cpu_isa, adagrad_tile);
  for_each_optimizer_tile(context, segments, dtypes, {}, [&](const OptimizerTile& tile, const TileOrigin& origin) {
    update(tile, groups[segments[origin.segment].group]);
  });
}

}  // namespace zerofleet::cpu
