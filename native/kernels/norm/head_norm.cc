#include "kernels/norm/head_norm.h"

#include <iterator>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

bool has_heads(const ConstMatrix& x, std::int64_t head_dim, std::span<const float> rstd) {
  return head_dim >= 1 && x.cols % head_dim == 0 && std::ssize(rstd) == x.cols / head_dim * x.rows;
}

}  // namespace

void head_norm(const Context& ctx, const HeadNormForward& args) {
  require(same_shape(args.x, args.y) && args.weight != nullptr && has_heads(args.x, args.head_dim, args.rstd),
          "invalid_argument", "head_norm: x, y, rstd, weight and head_dim do not fit each other");
  backend_of(ctx).head_norm(ctx, args);
}

void head_norm_backward(const Context& ctx, const HeadNormBackward& args) {
  require(same_shape(args.x, args.dy) && same_shape(args.x, args.dx) && args.weight != nullptr &&
              has_heads(args.x, args.head_dim, args.rstd) &&
              (args.dweight.empty() || std::ssize(args.dweight) == args.head_dim),
          "invalid_argument",
          "head_norm_backward: dy, x, dx, rstd, weight, dweight and head_dim do not fit each other");
  backend_of(ctx).head_norm_backward(ctx, args);
}

}  // namespace zerofleet
