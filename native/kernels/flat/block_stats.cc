#include "kernels/flat/block_stats.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void block_stats(const Context& context, std::span<const std::byte> values, DType dtype, std::int64_t block_numel,
                 std::span<double> sum_squares, std::span<float> max_abs) {
  require(block_numel > 0 && block_numel % 32 == 0, "invalid_argument", "a block has a multiple of 32 elements");
  const std::size_t block_bytes = static_cast<std::size_t>(block_numel) * size_of(dtype);
  require(values.size() == sum_squares.size() * block_bytes && max_abs.size() == sum_squares.size(), "invalid_argument",
          "there must be one sum and one magnitude per block");
  backend_of(context).block_stats(context, values, dtype, block_numel, sum_squares, max_abs);
}

}  // namespace zerofleet
