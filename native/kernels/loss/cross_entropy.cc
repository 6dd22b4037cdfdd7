#include "kernels/loss/cross_entropy.h"

#include <algorithm>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void cross_entropy(const Context& ctx, const CrossEntropy& args) {
  const auto rows = static_cast<std::size_t>(args.logits.rows);
  require(args.logits.dtype == DType::kF32 && args.logits.cols > 0 && args.targets.size() == rows &&
              args.losses.size() == rows && (args.factors.empty() || args.factors.size() == rows) &&
              std::ranges::all_of(args.targets, [&](std::int32_t target) { return target < args.logits.cols; }),
          "invalid_argument", "cross_entropy: logits, targets, losses and factors do not fit each other");
  require(
      args.dlogits.data == nullptr || (args.dlogits.rows == args.logits.rows && args.dlogits.cols == args.logits.cols),
      "invalid_argument", "cross_entropy: logits and their gradient differ in shape");
  backend_of(ctx).cross_entropy(ctx, args);
}

}  // namespace zerofleet
