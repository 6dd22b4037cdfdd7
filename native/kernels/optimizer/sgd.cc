#include "kernels/optimizer/sgd.h"

#include <algorithm>

#include "kernels/common/backend.h"

namespace zerofleet {

void sgd(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
         std::span<const SgdScalars> groups) {
  const bool has_buffer = std::ranges::any_of(groups, [](const SgdScalars& group) { return group.momentum != 0; });
  check_segments(segments, dtypes, has_buffer ? 1 : 0, groups.size());
  backend_of(context).sgd(context, segments, dtypes, groups);
}

}  // namespace zerofleet
