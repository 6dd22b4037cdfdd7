#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"

namespace zerofleet {

/// Pieces that lie one after another, and the array that they are added to.
struct Fold {
  std::span<const std::byte> pieces;  // (num_pieces, n) of piece_dtype
  DType piece_dtype = DType::kF32;
  std::int64_t num_pieces = 1;
  std::span<std::byte> sum;  // (n) of sum_dtype
  DType sum_dtype = DType::kF32;
  bool restart = false;  // the sum begins at 0 instead of the present contents
};

/// Adds the pieces one after another in fp32: ((sum + p0) + p1) + p2 and so on. A 16-bit sum is rounded (to nearest
/// even, as cast_from_f32 does) after each piece. So the result is the same whether pieces come in one call or in many.
/// One pass over memory. Throws Error{"invalid_argument"} for no piece, or unless pieces and sum have the same n.
void fold_pieces(const Context& context, const Fold& fold);

}  // namespace zerofleet
