#include "kernels/adagrad.h"

#include "core/error.h"
#include "kernels/cpu/optimizers.h"
#include "kernels/device_check.h"

namespace zerofleet {

void adagrad(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
             std::span<const AdagradScalars> groups) {
  require_backend(context, "adagrad");
  for (const AdagradScalars& group : groups) {
    require(group.eps > 0, "invalid_argument", "Adagrad needs eps > 0: it divides by sqrt(sum) + eps");
  }
  check_segments(segments, dtypes, 1, groups.size());
  cpu::adagrad(context, segments, dtypes, groups);
}

}  // namespace zerofleet
