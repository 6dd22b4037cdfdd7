#include "kernels/norm/rmsnorm.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check(const RmsNormForward& args) {
  const bool sizes = same_shape(args.x, args.y) && static_cast<std::int64_t>(args.rstd.size()) == args.x.rows &&
                     args.weight != nullptr && args.x.cols >= 1;
  const bool delta = args.delta.data == nullptr || (same_shape(args.x, args.delta) && same_shape(args.x, args.sum));
  require(sizes && delta, "invalid_argument", "rmsnorm: x, delta, sum, y, rstd and weight do not fit each other");
}

void check(const RmsNormBackward& args) {
  const bool sizes = same_shape(args.x, args.dy) && same_shape(args.x, args.dx) && args.weight != nullptr &&
                     static_cast<std::int64_t>(args.rstd.size()) == args.x.rows &&
                     (args.dweight.empty() || static_cast<std::int64_t>(args.dweight.size()) == args.x.cols);
  const bool residual = args.residual.data == nullptr || same_shape(args.x, args.residual);
  require(sizes && residual, "invalid_argument",
          "rmsnorm_backward: dy, x, residual, dx, rstd, weight and dweight do not fit each other");
}

}  // namespace

void rmsnorm(const Context& ctx, const RmsNormForward& args) {
  check(args);
  backend_of(ctx).rmsnorm(ctx, args);
}

void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args) {
  check(args);
  backend_of(ctx).rmsnorm_backward(ctx, args);
}

}  // namespace zerofleet
