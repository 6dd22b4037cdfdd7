#include "kernels/adam.h"

#include "core/error.h"
#include "kernels/cpu/optimizers.h"
#include "kernels/device_check.h"

namespace zerofleet {

void adam(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const AdamScalars> groups) {
  require_backend(context, "adam");
  for (const AdamScalars& group : groups) {
    require(group.eps > 0, "invalid_argument", "Adam needs eps > 0: it divides by sqrt(v) + eps");
  }
  check_segments(segments, dtypes, 2, groups.size());
  cpu::adam(context, segments, dtypes, groups);
}

}  // namespace zerofleet
