#pragma once

#include <span>
#include <variant>

#include "core/device/context.h"
#include "kernels/common/backend.h"
#include "kernels/optimizer/formulas/all.h"
#include "kernels/optimizer/optimizer_segment.h"

namespace zerofleet {

/// The scalars of each parameter group, for one update.
template <class Update>
struct UpdateGroups {
  std::span<const typename Update::Scalars> scalars;
};

template <class... Updates>
std::variant<UpdateGroups<Updates>...> any_of(UpdateList<Updates...>);

/// Parameter groups of any update.
struct OptimizerGroups {
  decltype(any_of(OptimizerUpdates{})) variant;
};

/// Applies Update::apply() (kernels/optimizer/formulas) to every element of the segments, with the scalars of its
/// segment's group, in one pass over memory. Then params = round(master), and the average moves (MovingAverage). Every
/// device and instruction-set path gives equal bits. Throws Error{"invalid_argument"} for eps <= 0 where the update has
/// one, which it divides by, and as check_segments() does.
template <class Update>
void optimizer_update(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                      std::span<const typename Update::Scalars> groups) {
  if constexpr (requires(const typename Update::Scalars& scalars) { scalars.eps; }) {
    for (const auto& scalars : groups) require_eps(scalars.eps);
  }
  check_segments(segments, dtypes, Update::kNumStates, groups.size());
  backend_of(context).optimizer_update(context, segments, dtypes, {UpdateGroups<Update>{groups}});
}

}  // namespace zerofleet
