#include "kernels/optimizer/simd/update_tile.h"

#include "kernels/optimizer/formulas/all.h"
#include "kernels/optimizer/simd/optimizer_sweep.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class Update>
void run(const OptimizerTile& tile, const void* scalars) {
  sweep_tile<Update>(tile, *static_cast<const typename Update::Scalars*>(scalars));
}

template <class... Updates>
ZF_INLINE void run_one_of(UpdateList<Updates...>, int update, const OptimizerTile& tile, const void* scalars) {
  constexpr void (*kRuns[])(const OptimizerTile&, const void*) = {run<Updates>...};
  kRuns[update](tile, scalars);
}

}  // namespace

void update_tile(int update, const OptimizerTile& tile, const void* scalars) {
  run_one_of(OptimizerUpdates{}, update, tile, scalars);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
