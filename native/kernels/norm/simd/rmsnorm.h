#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Rows of an RMS norm. All matrices are (rows, cols) of one element type and one stride each.
struct RmsNormArgs {
  const void* x = nullptr;
  int64_t x_stride = 0;
  const void* delta = nullptr;  // added to x first, unless null
  int64_t delta_stride = 0;
  void* sum = nullptr;  // x + delta, rounded
  int64_t sum_stride = 0;
  const void* weight = nullptr;  // (cols)
  void* y = nullptr;
  int64_t y_stride = 0;
  float* rstd = nullptr;  // (rows) 1 / sqrt(mean(x²) + eps)
  float eps = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

struct RmsNormBackwardArgs {
  const void* dy = nullptr;
  int64_t dy_stride = 0;
  const void* x = nullptr;  // the input of the normalisation
  int64_t x_stride = 0;
  const void* weight = nullptr;
  const float* rstd = nullptr;
  const void* residual = nullptr;  // added to dx, unless null; may be dx itself
  int64_t residual_stride = 0;
  void* dx = nullptr;
  int64_t dx_stride = 0;
  float* dweight = nullptr;  // (cols) sums over these rows
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void rmsnorm_rows(const RmsNormArgs& args))
ZF_DECLARE_KERNEL(void rmsnorm_backward_rows(const RmsNormBackwardArgs& args))

}  // namespace zerofleet::cpu
