#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

struct RowGateArgs {
  ConstRows gate;  // (rows, 1)
  ConstRows x;     // (rows, cols)
  Rows y;          // (rows, cols) forward
  ConstRows dy;    // (rows, cols) backward
  Rows dx;         // (rows, cols) backward
  Rows dgate;      // (rows, 1) backward
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void add_gated_rows(const RowGateArgs& args))
ZF_DECLARE_KERNEL(void add_gated_backward_rows(const RowGateArgs& args))

}  // namespace zerofleet::cpu
