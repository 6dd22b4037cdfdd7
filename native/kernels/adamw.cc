#include "kernels/adamw.h"

#include "core/error.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/device_check.h"

namespace zerofleet {

void adamw(const Context& context, std::span<const AdamWSegment> segments, DType param_dtype,
           const AdamWScalars& scalars) {
  require_backend(context, "adamw");
  require(scalars.eps > 0, "invalid_argument", "AdamW needs eps > 0: it divides by sqrt(v) + eps");
  for (const AdamWSegment& segment : segments) {
    require(segment.numel >= 0, "invalid_argument", "a segment has a negative number of elements");
  }
  cpu::adamw(context, segments, param_dtype, scalars);
}

}  // namespace zerofleet
