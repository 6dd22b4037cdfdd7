#include "kernels/optimizer/adam.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void adam(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const AdamScalars> groups) {
  for (const AdamScalars& group : groups) {
    require(group.eps > 0, "invalid_argument", "Adam needs eps > 0: it divides by sqrt(v) + eps");
  }
  check_segments(segments, dtypes, 2, groups.size());
  backend_of(context).adam(context, segments, dtypes, groups);
}

}  // namespace zerofleet
