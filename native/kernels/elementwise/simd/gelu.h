#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Rows of GELU, of one element type. The result may lie over an operand.
struct GeluArgs {
  const void* x = nullptr;  // (rows, cols)
  int64_t x_stride = 0;
  const void* dy = nullptr;  // (rows, cols) backward: gradient of the forward's result
  int64_t dy_stride = 0;
  void* result = nullptr;  // (rows, cols) gelu(x), or backward: dy · gelu'(x)
  int64_t result_stride = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void gelu_rows(const GeluArgs& args))
ZF_DECLARE_KERNEL(void gelu_backward_rows(const GeluArgs& args))
ZF_DECLARE_KERNEL(void gelu_tanh_rows(const GeluArgs& args))
ZF_DECLARE_KERNEL(void gelu_tanh_backward_rows(const GeluArgs& args))

}  // namespace zerofleet::cpu
