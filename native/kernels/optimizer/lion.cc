#include "kernels/optimizer/lion.h"

#include "kernels/optimizer/cpu/launch.h"
#include "kernels/optimizer/cuda/launch.h"

namespace zerofleet {

void lion(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
          std::span<const LionScalars> groups) {
  check_segments(segments, dtypes, 1, groups.size());
  switch (context.device.kind) {
    case DeviceKind::kCpu: return cpu::lion(context, segments, dtypes, groups);
    case DeviceKind::kCuda: return cuda::lion(context, segments, dtypes, groups);
  }
}

}  // namespace zerofleet
