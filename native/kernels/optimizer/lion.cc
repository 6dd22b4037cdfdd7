#include "kernels/optimizer/lion.h"

#include "kernels/common/backend.h"

namespace zerofleet {

void lion(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const LionScalars> groups) {
  check_segments(segments, dtypes, 1, groups.size());
  backend_of(context).lion(context, segments, dtypes, groups);
}

}  // namespace zerofleet
