#include "kernels/flat/fold.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {

void fold_pieces(const Context& context, const Fold& fold) {
  require(fold.num_pieces >= 1, "invalid_argument", "there must be at least one piece");
  const std::size_t numel = fold.sum.size() / size_of(fold.sum_dtype);
  require(fold.sum.size() == numel * size_of(fold.sum_dtype) &&
              fold.pieces.size() == static_cast<std::size_t>(fold.num_pieces) * numel * size_of(fold.piece_dtype),
          "invalid_argument", "every piece must have as many elements as the sum");
  backend_of(context).fold_pieces(context, fold);
}

}  // namespace zerofleet
