#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/optimizer/adam_scalars.h"
#include "kernels/optimizer/optimizer_segment.h"

namespace zerofleet {

/// Adam with L2 regularisation (Kingma and Ba, "Adam: a method for stochastic optimization", 2015). In one pass over
/// memory, for every element, with m and v in states[0] and states[1] and the scalars of the segment's group:
///   g = grad × grad_factor + master × weight_decay
///   m = flushed(m + (g - m)(1 - beta1));
///   v = flushed(v × beta2 + g × g × (1 - beta2))
///   master -= step_size × m / (sqrt(v) × inv_sqrt_correction2 + eps);  params = round(master)
/// Only correctly rounded operations in a fixed order and no fused ones: every instruction-set path gives equal bits.
/// Throws Error{"invalid_argument"} for eps <= 0 and as check_segments() does.
void adam(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const AdamScalars> groups);

}  // namespace zerofleet
