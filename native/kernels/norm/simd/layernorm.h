#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows of a layer norm. All matrices are (rows, cols) of one element type and one stride each.
struct LayerNormArgs {
  ConstRows x;
  ConstRows delta;               // added to x first, unless null
  Rows sum;                      // x + delta, rounded
  const void* weight = nullptr;  // (cols)
  const void* bias = nullptr;    // (cols)
  Rows y;
  float* mean = nullptr;  // (rows)
  float* rstd = nullptr;  // (rows) 1 / sqrt(mean((x − mean)²) + eps)
  float eps = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

struct LayerNormBackwardArgs {
  ConstRows dy;
  ConstRows x;  // the input of the normalisation
  const void* weight = nullptr;
  const float* mean = nullptr;
  const float* rstd = nullptr;
  ConstRows residual;  // added to dx, unless null; may be dx itself
  Rows dx;
  float* dweight = nullptr;  // (cols) sums over these rows; null: neither they nor dbias are computed
  float* dbias = nullptr;    // (cols) sums over these rows
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void layernorm_rows(const LayerNormArgs& args))
ZF_DECLARE_KERNEL(void layernorm_backward_rows(const LayerNormBackwardArgs& args))

}  // namespace zerofleet::cpu
