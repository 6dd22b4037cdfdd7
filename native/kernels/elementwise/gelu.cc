#include "kernels/elementwise/gelu.h"

#include "core/error.h"
#include "kernels/elementwise/cpu/launch.h"
#include "kernels/elementwise/cuda/launch.h"

namespace zerofleet {
namespace {

void require_one_shape(const ConstMatrix& a, const ConstMatrix& b) {
  require(same_shape(a, b), "invalid_argument", "gelu: all matrices must have one shape and dtype");
}

}  // namespace

void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y) {
  require_one_shape(x, y);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::gelu(ctx, kind, x, y);
    case DeviceKind::kCuda: return cuda::gelu(ctx, kind, x, y);
  }
}

void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx) {
  require_one_shape(x, dy);
  require_one_shape(x, dx);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::gelu_backward(ctx, kind, x, dy, dx);
    case DeviceKind::kCuda: return cuda::gelu_backward(ctx, kind, x, dy, dx);
  }
}

}  // namespace zerofleet
