#include "kernels/elementwise/soft_cap.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void soft_cap(const Context& ctx, double cap, const ConstMatrix& x, const Matrix& y) {
  require(same_shape(x, y) && cap > 0, "invalid_argument", "soft_cap: x and y must have one shape and dtype");
  backend_of(ctx).soft_cap(ctx, static_cast<float>(cap), x, y);
}

}  // namespace zerofleet
