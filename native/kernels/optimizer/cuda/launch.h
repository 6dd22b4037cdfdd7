#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/optimizer_update.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/optimizer/.
namespace zerofleet::cuda {

void optimizer_update(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                      const OptimizerGroups& groups);
void lamb_prepare(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                  std::span<const LambScalars> groups, const LambSums& sums);

}  // namespace zerofleet::cuda
