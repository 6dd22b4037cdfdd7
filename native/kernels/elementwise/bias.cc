#include "kernels/elementwise/bias.h"

#include <iterator>

#include "core/error.h"
#include "kernels/elementwise/cpu/launch.h"
#include "kernels/elementwise/cuda/launch.h"

namespace zerofleet {

void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias) {
  require(dy.data != nullptr && dy.cols == std::ssize(dbias), "invalid_argument",
          "bias_gradient: dbias needs one element per column of dy");
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::bias_gradient(ctx, dy, dbias);
    case DeviceKind::kCuda: return cuda::bias_gradient(ctx, dy, dbias);
  }
}

}  // namespace zerofleet
