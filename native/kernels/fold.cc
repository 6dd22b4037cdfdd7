#include "kernels/fold.h"

#include "core/error.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/device_check.h"

namespace zerofleet {

void fold_pieces(const Context& context, std::span<const std::byte> pieces, DType dtype, std::int64_t num_pieces,
                 bool restart, std::span<float> sum) {
  require_backend(context, "fold_pieces");
  require(num_pieces >= 1, "invalid_argument", "there must be at least one piece");
  require(pieces.size() == static_cast<std::size_t>(num_pieces) * sum.size() * size_of(dtype), "invalid_argument",
          "every piece must have the size of the sum");
  cpu::fold_pieces(context, pieces, dtype, num_pieces, restart, sum);
}

}  // namespace zerofleet
