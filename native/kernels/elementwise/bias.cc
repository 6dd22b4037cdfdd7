#include "kernels/elementwise/bias.h"

#include <iterator>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias, bool accumulate) {
  require(dy.data != nullptr && dy.cols == std::ssize(dbias), "invalid_argument",
          "bias_gradient: dbias needs one element per column of dy");
  backend_of(ctx).bias_gradient(ctx, dy, dbias, accumulate);
}

}  // namespace zerofleet
