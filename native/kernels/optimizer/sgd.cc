#include "kernels/optimizer/sgd.h"

#include <algorithm>

#include "kernels/optimizer/cpu/launch.h"
#include "kernels/optimizer/cuda/launch.h"

namespace zerofleet {

void sgd(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
         std::span<const SgdScalars> groups) {
  const bool has_buffer = std::ranges::any_of(groups, [](const SgdScalars& group) { return group.momentum != 0; });
  check_segments(segments, dtypes, has_buffer ? 1 : 0, groups.size());
  switch (context.device.kind) {
    case DeviceKind::kCpu: return cpu::sgd(context, segments, dtypes, groups);
    case DeviceKind::kCuda: return cuda::sgd(context, segments, dtypes, groups);
  }
}

}  // namespace zerofleet
