#include "kernels/flat/simd/fold.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

// Partial sums of this many elements stay in the first-level cache while the pieces are added one after another.
constexpr int64_t kChunk = 2048;

template <class Piece, class Sum>
ZF_INLINE void fold(const FoldTile& tile, const Piece* pieces, Sum* sum) {
  for (int64_t begin = 0; begin < tile.numel; begin += kChunk) {
    const int64_t count = tile.numel - begin < kChunk ? tile.numel - begin : kChunk;
    Sum* target = sum + begin;
    for (int64_t piece = 0; piece < tile.num_pieces; ++piece) {
      const Piece* source = pieces + piece * tile.stride + begin;
      if (tile.restart && piece == 0) {
        // Adding to zero, not copying: it turns -0 into +0, as adding the piece to a cleared sum would.
        sweep(count, [&](int64_t i, auto part) { store(target + i, zero() + load(source + i, part), part); });
      } else {
        sweep(count,
              [&](int64_t i, auto part) { store(target + i, load(target + i, part) + load(source + i, part), part); });
      }
    }
  }
}

}  // namespace

void fold_tile(const FoldTile& tile) {
  with_element(tile.piece_dtype, [&]<class Piece>(Piece*) {
    with_element(tile.sum_dtype, [&]<class Sum>(Sum*) {
      fold(tile, static_cast<const Piece*>(tile.pieces), static_cast<Sum*>(tile.sum));
    });
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
