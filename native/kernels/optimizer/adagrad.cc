#include "kernels/optimizer/adagrad.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void adagrad(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
             std::span<const AdagradScalars> groups) {
  for (const AdagradScalars& group : groups) {
    require(group.eps > 0, "invalid_argument", "Adagrad needs eps > 0: it divides by sqrt(sum) + eps");
  }
  check_segments(segments, dtypes, 1, groups.size());
  backend_of(context).adagrad(context, segments, dtypes, groups);
}

}  // namespace zerofleet
