#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/optimizer/optimizer_segment.h"
#include "kernels/optimizer/sgd_scalars.h"

namespace zerofleet {

/// Stochastic gradient descent with momentum, as torch.optim has it (Sutskever et al., "On the importance of
/// initialization and momentum in deep learning", 2013). In one pass over memory, for every element, with the momentum
/// buffer b in states[0] and the scalars of the segment's group:
///   g = grad × grad_factor + master × weight_decay
///   with momentum:  b = flushed(b × momentum + g × one_minus_dampening);  g = nesterov ? g + b × momentum : b
///   master -= lr × g;  params = round(master)
/// Only correctly rounded operations in a fixed order and no fused ones: every instruction-set path gives equal bits.
/// Throws Error{"invalid_argument"} as check_segments() does; states[0] may be null if no group has momentum.
void sgd(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
         std::span<const SgdScalars> groups);

}  // namespace zerofleet
