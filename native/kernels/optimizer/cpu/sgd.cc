#include "kernels/optimizer/simd/sgd.h"

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/optimizer/cpu/launch.h"
#include "kernels/optimizer/cpu/optimizer_tiles.h"

namespace zerofleet::cpu {

void sgd(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
         std::span<const SgdScalars> groups) {
  const auto plain = ZF_PICK_KERNEL(context.cpu_isa, sgd_tile);
  const auto with_momentum = ZF_PICK_KERNEL(context.cpu_isa, sgd_momentum_tile);
  const auto with_nesterov = ZF_PICK_KERNEL(context.cpu_isa, sgd_nesterov_tile);
  for_each_optimizer_tile(context, segments, dtypes, {}, [&](const OptimizerTile& tile, const TileOrigin& origin) {
    const SgdScalars& scalars = groups[segments[origin.segment].group];
    const auto update = scalars.momentum == 0 ? plain : scalars.nesterov ? with_nesterov : with_momentum;
    update(tile, scalars);
  });
}

}  // namespace zerofleet::cpu
