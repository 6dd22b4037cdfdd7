#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows of a dropout: y = x · scale, or with `adds` y + x · scale, or x · 0 where the element's draw is below the
/// threshold (kernels/elementwise/dropout.h). The element in column c of row r has the index first_element + r ·
/// elements_per_row + c.
struct DropoutArgs {
  uint64_t stream = 0;
  uint32_t dropped_below = 0;
  float scale = 1;
  bool adds = false;
  ConstRows x;  // (rows, cols)
  Rows y;       // (rows, cols); may be x
  uint64_t first_element = 0;
  uint64_t elements_per_row = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void dropout_rows(const DropoutArgs& args))

}  // namespace zerofleet::cpu
