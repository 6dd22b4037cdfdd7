#include "kernels/lion.h"

#include "kernels/cpu/optimizers.h"
#include "kernels/device_check.h"

namespace zerofleet {

void lion(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const LionScalars> groups) {
  require_backend(context, "lion");
  check_segments(segments, dtypes, 1, groups.size());
  cpu::lion(context, segments, dtypes, groups);
}

}  // namespace zerofleet
