#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows of GELU, of one element type. The result may lie over an operand.
struct GeluArgs {
  ConstRows x;   // (rows, cols)
  ConstRows dy;  // (rows, cols) backward: gradient of the forward's result
  Rows result;   // (rows, cols) gelu(x), or backward: dy · gelu'(x)
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void gelu_rows(const GeluArgs& args))
ZF_DECLARE_KERNEL(void gelu_backward_rows(const GeluArgs& args))
ZF_DECLARE_KERNEL(void gelu_tanh_rows(const GeluArgs& args))
ZF_DECLARE_KERNEL(void gelu_tanh_backward_rows(const GeluArgs& args))

}  // namespace zerofleet::cpu
