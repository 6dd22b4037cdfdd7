#include "kernels/sgd.h"

#include <algorithm>

#include "kernels/cpu/optimizers.h"
#include "kernels/device_check.h"

namespace zerofleet {

void sgd(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
         std::span<const SgdScalars> groups) {
  require_backend(context, "sgd");
  const bool has_buffer = std::ranges::any_of(groups, [](const SgdScalars& group) { return group.momentum != 0; });
  check_segments(segments, dtypes, has_buffer ? 1 : 0, groups.size());
  cpu::sgd(context, segments, dtypes, groups);
}

}  // namespace zerofleet
