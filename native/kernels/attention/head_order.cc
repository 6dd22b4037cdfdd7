#include "kernels/attention/head_order.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void order_heads(const Context& ctx, const HeadOrder& args) {
  require(args.num_heads >= 1 && args.qkv.cols % (3 * args.num_heads) == 0, "invalid_argument",
          "order_heads: the columns are not the queries, keys and values of whole heads");
  backend_of(ctx).order_heads(ctx, args);
}

}  // namespace zerofleet
