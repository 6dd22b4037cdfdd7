#pragma once

#include <span>

#include "core/context.h"
#include "kernels/adagrad_scalars.h"
#include "kernels/adam_scalars.h"
#include "kernels/adamw_scalars.h"
#include "kernels/lamb.h"
#include "kernels/lion_scalars.h"
#include "kernels/optimizer_segment.h"
#include "kernels/sgd_scalars.h"

// CPU backends of the optimizers; arguments are checked by the entries in kernels/.
namespace zerofleet::cpu {

void adamw(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
           std::span<const AdamWScalars> groups);
void adam(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const AdamScalars> groups);
void lamb_prepare(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                  std::span<const LambScalars> groups, const LambSums& sums);
void lamb_update(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                 std::span<const LambScalars> groups, std::span<const float> trust_ratios);
void lion(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const LionScalars> groups);
void adagrad(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
             std::span<const AdagradScalars> groups);
void sgd(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
         std::span<const SgdScalars> groups);

}  // namespace zerofleet::cpu
