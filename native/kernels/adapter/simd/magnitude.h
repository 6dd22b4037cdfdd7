#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Squares of V = weight + left · right, rows and columns as they lie in memory.
struct AdaptedSquaresArgs {
  ConstRows weight;              // (rows, cols)
  const float* left = nullptr;   // (rows, rank)
  const float* right = nullptr;  // (rank, cols)
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t rank = 0;
  DType dtype = DType::kF32;
  float* sums = nullptr;
};

/// sums (rows) = Σ over the columns.
ZF_DECLARE_KERNEL(void adapted_row_squares(const AdaptedSquaresArgs& args))
/// sums (cols) += Σ over the rows, in rising order.
ZF_DECLARE_KERNEL(void adapted_column_squares(const AdaptedSquaresArgs& args))

struct ColumnScalingArgs {
  ConstRows x;                     // (rows, cols)
  const float* factors = nullptr;  // (cols)
  const void* bias = nullptr;      // (cols), or null
  Rows y;                          // (rows, cols)
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void scale_columns_of_rows(const ColumnScalingArgs& args))

/// target (cols) += a · b.
ZF_DECLARE_KERNEL(void add_row_product(float* target, const void* a, const void* b, int64_t cols, DType dtype))

}  // namespace zerofleet::cpu
