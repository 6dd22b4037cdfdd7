#include "kernels/flat/simd/fold.h"

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/flat/cpu/tiles.h"
#include "kernels/flat/fold.h"

namespace zerofleet::cpu {

void fold_pieces(const Context& context, const Fold& fold) {
  const auto fold_one = ZF_PICK_KERNEL(context.cpu_isa, fold_tile);
  const std::size_t piece_width = size_of(fold.piece_dtype), sum_width = size_of(fold.sum_dtype);
  const auto numel = static_cast<std::int64_t>(fold.sum.size() / sum_width);
  for_each_tile(context, numel, [&](std::int64_t begin, std::int64_t end) {
    FoldTile tile{};
    tile.pieces = fold.pieces.data() + static_cast<std::size_t>(begin) * piece_width;
    tile.piece_dtype = fold.piece_dtype;
    tile.stride = numel;
    tile.num_pieces = fold.num_pieces;
    tile.sum = fold.sum.data() + static_cast<std::size_t>(begin) * sum_width;
    tile.sum_dtype = fold.sum_dtype;
    tile.numel = end - begin;
    tile.restart = fold.restart;
    fold_one(tile);
  });
}

}  // namespace zerofleet::cpu
