#include "kernels/optimizer/optimizer_segment.h"

#include "core/error.h"

namespace zerofleet {

void check_segments(std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes, std::size_t num_states,
                    std::size_t num_groups) {
  require(dtypes.master != DType::kBF16, "invalid_argument", "master weights are fp32 or fp16, bf16 is too coarse");
  for (const OptimizerSegment& segment : segments) {
    require(segment.numel >= 0, "invalid_argument", "a segment has a negative number of elements");
    require(segment.group < num_groups, "invalid_argument", "a segment names a group that has no scalars");
    if (segment.numel == 0) continue;
    bool complete = segment.master != nullptr && segment.grad != nullptr;
    for (std::size_t i = 0; i < num_states; ++i) complete = complete && segment.states[i] != nullptr;
    require(complete, "invalid_argument", "a segment lacks its master, its gradient or a state of the optimizer");
  }
}

void require_eps(float eps) {
  require(eps > 0, "invalid_argument", "the optimizer needs eps > 0: it divides by a root + eps");
}

}  // namespace zerofleet
