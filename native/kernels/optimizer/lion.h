#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/optimizer/lion_scalars.h"
#include "kernels/optimizer/optimizer_segment.h"

namespace zerofleet {

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", 2023). In one pass over memory, for every
/// element, with m in states[0] and the scalars of the segment's group:
///   g = grad × grad_factor;  c = m + (g - m)(1 - beta1);  m = flushed(m + (g - m)(1 - beta2))
///   master = master × decay_factor - lr × sign(c), sign(0) = 0;  params = round(master)
/// Only correctly rounded operations in a fixed order and no fused ones: every instruction-set path gives equal bits.
/// Throws Error{"invalid_argument"} as check_segments() does.
void lion(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const LionScalars> groups);

}  // namespace zerofleet
