#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/optimizer/adagrad_scalars.h"
#include "kernels/optimizer/optimizer_segment.h"

namespace zerofleet {

/// Adagrad (Duchi, Hazan and Singer, "Adaptive subgradient methods", 2011), as torch.optim has it. In one pass over
/// memory, for every element, with the sum of squares s in states[0] and the scalars of the segment's group:
///   g = grad × grad_factor + master × weight_decay;  s = flushed(s + g × g)
///   master -= step_size × g / (sqrt(s) + eps);  params = round(master)
/// Only correctly rounded operations in a fixed order and no fused ones: every instruction-set path gives equal bits.
/// Throws Error{"invalid_argument"} for eps <= 0 and as check_segments() does.
void adagrad(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
             std::span<const AdagradScalars> groups);

}  // namespace zerofleet
