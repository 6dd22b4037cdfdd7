#include "kernels/norm/layernorm.h"

#include <iterator>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

bool has(std::span<const float> values, std::int64_t count) { return std::ssize(values) == count; }

void check(const LayerNormForward& args) {
  const bool sizes = same_shape(args.x, args.y) && has(args.mean, args.x.rows) && has(args.rstd, args.x.rows) &&
                     args.weight != nullptr && args.bias != nullptr && args.x.cols >= 1;
  const bool delta = args.delta.data == nullptr || (same_shape(args.x, args.delta) && same_shape(args.x, args.sum));
  require(sizes && delta, "invalid_argument",
          "layernorm: x, delta, sum, y, mean, rstd, weight and bias do not fit each other");
}

void check(const LayerNormBackward& args) {
  const bool sizes = same_shape(args.x, args.dy) && same_shape(args.x, args.dx) && args.weight != nullptr &&
                     has(args.mean, args.x.rows) && has(args.rstd, args.x.rows) &&
                     (args.dweight.empty() || has(args.dweight, args.x.cols)) &&
                     has(args.dbias, std::ssize(args.dweight));
  const bool residual = args.residual.data == nullptr || same_shape(args.x, args.residual);
  require(sizes && residual, "invalid_argument",
          "layernorm_backward: dy, x, residual, dx, mean, rstd, weight, dweight and dbias do not fit each other");
}

}  // namespace

void layernorm(const Context& ctx, const LayerNormForward& args) {
  check(args);
  backend_of(ctx).layernorm(ctx, args);
}

void layernorm_backward(const Context& ctx, const LayerNormBackward& args) {
  check(args);
  backend_of(ctx).layernorm_backward(ctx, args);
}

}  // namespace zerofleet
