#include "kernels/optimizer/adagrad.h"

#include "core/error.h"
#include "kernels/optimizer/cpu/launch.h"
#include "kernels/optimizer/cuda/launch.h"

namespace zerofleet {

void adagrad(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
             std::span<const AdagradScalars> groups) {
  for (const AdagradScalars& group : groups) {
    require(group.eps > 0, "invalid_argument", "Adagrad needs eps > 0: it divides by sqrt(sum) + eps");
  }
  check_segments(segments, dtypes, 1, groups.size());
  switch (context.device.kind) {
    case DeviceKind::kCpu: return cpu::adagrad(context, segments, dtypes, groups);
    case DeviceKind::kCuda: return cuda::adagrad(context, segments, dtypes, groups);
  }
}

}  // namespace zerofleet
