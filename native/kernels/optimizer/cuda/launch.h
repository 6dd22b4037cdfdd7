#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/optimizer/adagrad_scalars.h"
#include "kernels/optimizer/adam_scalars.h"
#include "kernels/optimizer/adamw_scalars.h"
#include "kernels/optimizer/lamb.h"
#include "kernels/optimizer/lion_scalars.h"
#include "kernels/optimizer/optimizer_segment.h"
#include "kernels/optimizer/sgd_scalars.h"

// The CUDA launchers of this family; arguments were checked by the entries in kernels/optimizer/.
namespace zerofleet::cuda {

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

}  // namespace zerofleet::cuda
