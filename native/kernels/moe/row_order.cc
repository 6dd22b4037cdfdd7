#include "kernels/moe/row_order.h"

#include <iterator>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check(bool fits) { require(fits, "invalid_argument", "rows of experts: the sizes do not fit"); }

}  // namespace

void count_rows(const Context& ctx, std::span<const std::int32_t> first, std::span<std::int32_t> counts) {
  check(first.size() == counts.size() + 1 && counts.size() <= INT32_MAX / 2);
  backend_of(ctx).count_rows(ctx, first, counts);
}

void order_rows(const Context& ctx, std::span<const std::int32_t> counts, const RowOrder& order) {
  const std::size_t num_experts = order.first.size() - 1;  // a huge number where there is none
  check(!order.first.empty() && num_experts > 0 && counts.size() % num_experts == 0 && !counts.empty() &&
        counts.size() <= INT32_MAX / 2 && order.arrived.size() == order.wanted.size() &&
        order.wanted.size() <= INT32_MAX / 2);
  backend_of(ctx).order_rows(ctx, counts, order);
}

void pick_rows(const Context& ctx, const ConstMatrix& source, std::span<const std::int32_t> numbers,
               const Matrix& target) {
  check(std::ssize(numbers) == target.rows && source.cols == target.cols && source.dtype == target.dtype);
  backend_of(ctx).pick_rows(ctx, source, numbers, target);
}

}  // namespace zerofleet
