#include "kernels/block_stats.h"

#include "core/error.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/device_check.h"

namespace zerofleet {

void block_sum_squares(const Context& context, std::span<const float> values, std::int64_t block_numel,
                       std::span<double> sums) {
  require_backend(context, "block_sum_squares");
  require(block_numel > 0 && block_numel % 32 == 0, "invalid_argument", "a block has a positive multiple of 32 elements");
  require(values.size() == sums.size() * static_cast<std::size_t>(block_numel), "invalid_argument",
          "there must be one sum per block");
  cpu::block_sum_squares(context, values, block_numel, sums);
}

}  // namespace zerofleet
