#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows of an RMS norm. All matrices are (rows, cols) of one element type and one stride each.
struct RmsNormArgs {
  ConstRows x;
  ConstRows delta;               // added to x first, unless null
  Rows sum;                      // x + delta, rounded
  const void* weight = nullptr;  // (cols)
  float weight_offset = 0;
  Rows y;
  float* rstd = nullptr;  // (rows) 1 / sqrt(mean(x²) + eps)
  float eps = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

struct RmsNormBackwardArgs {
  ConstRows dy;
  ConstRows x;  // the input of the normalisation
  const void* weight = nullptr;
  float weight_offset = 0;
  const float* rstd = nullptr;
  ConstRows residual;  // added to dx, unless null; may be dx itself
  Rows dx;
  float* dweight = nullptr;  // (cols) sums over these rows; null: not computed
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void rmsnorm_rows(const RmsNormArgs& args))
ZF_DECLARE_KERNEL(void rmsnorm_backward_rows(const RmsNormBackwardArgs& args))

}  // namespace zerofleet::cpu
