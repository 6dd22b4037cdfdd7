#pragma once

#include <span>

#include "core/context.h"
#include "kernels/adamw_scalars.h"
#include "kernels/optimizer_segment.h"

// CPU backends of the optimizers; arguments are checked by the entries in kernels/.
namespace zerofleet::cpu {

void adamw(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
           std::span<const AdamWScalars> groups);

}  // namespace zerofleet::cpu
