#include "kernels/optimizer/optimizer_update.h"

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/optimizer/cpu/optimizer_tiles.h"
#include "kernels/optimizer/simd/update_tile.h"

namespace zerofleet::cpu {
namespace {

template <class Update>
void update_all(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                std::span<const typename Update::Scalars> groups) {
  const auto update = ZF_PICK_KERNEL(context.cpu_isa, update_tile);
  const TileAccess access{.reads_grad = Update::kReadsGrad};
  for_each_optimizer_tile(context, segments, dtypes, access, [&](const OptimizerTile& tile, const TileOrigin& origin) {
    update(kUpdateIndex<Update, OptimizerUpdates>, tile, &groups[segments[origin.segment].group]);
  });
}

}  // namespace

void optimizer_update(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                      const OptimizerGroups& groups) {
  std::visit([&]<class Update>(
                 const UpdateGroups<Update>& update) { update_all<Update>(context, segments, dtypes, update.scalars); },
             groups.variant);
}

}  // namespace zerofleet::cpu
