#include "kernels/optimizer/adamw.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void adamw(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
           std::span<const AdamWScalars> groups) {
  for (const AdamWScalars& group : groups) {
    require(group.eps > 0, "invalid_argument", "AdamW needs eps > 0: it divides by sqrt(v) + eps");
  }
  check_segments(segments, dtypes, 2, groups.size());
  backend_of(context).adamw(context, segments, dtypes, groups);
}

}  // namespace zerofleet
