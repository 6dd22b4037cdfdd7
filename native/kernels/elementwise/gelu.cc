#include "kernels/elementwise/gelu.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void require_one_shape(const ConstMatrix& a, const ConstMatrix& b) {
  require(same_shape(a, b), "invalid_argument", "gelu: all matrices must have one shape and dtype");
}

}  // namespace

void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y) {
  require_one_shape(x, y);
  backend_of(ctx).gelu(ctx, kind, x, y);
}

void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx) {
  require_one_shape(x, dy);
  require_one_shape(x, dx);
  backend_of(ctx).gelu_backward(ctx, kind, x, dy, dx);
}

}  // namespace zerofleet
