#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// A stretch of a fold; see kernels/flat/fold.h for the arithmetic.
struct FoldTile {
  const void* pieces;  // first element of the stretch in piece 0
  DType piece_dtype;
  int64_t stride;  // elements from one piece to the next
  int64_t num_pieces;
  void* sum;  // first element of the stretch
  DType sum_dtype;
  int64_t numel;
  bool restart;
};

ZF_DECLARE_KERNEL(void fold_tile(const FoldTile& tile))

}  // namespace zerofleet::cpu
