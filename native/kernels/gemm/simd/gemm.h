#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Columns of one panel of a packed operand.
constexpr int64_t kPanel = 32;

/// Part that a product with a triangle of zeros may leave out, in whole tiles; `diagonal` shifts the triangle.
enum class Triangle : uint8_t {
  kNone,
  kColsAbove,   // columns of C beyond diagonal + row are not needed and may keep their previous contents
  kStepsAbove,  // A is zero where k > diagonal + row
  kStepsBelow,  // A is zero where k < row - diagonal
};

/// C (rows, cols) = A (rows, steps) · B (steps, cols), single-threaded, over operands of 32-bit words.
///
/// A word is one fp32 element, or with `pairs` two bf16 elements that are neighbours in k. B is packed: panels of 32
/// columns, each [step][32 columns] words, zero beyond the last column. A word of A stands at
///   a + (row / 32) · a_group_stride + (row % 32) · a_row_stride + step · a_step_stride,
/// which covers row-major matrices (steps next to each other) and packed ones (rows next to each other) alike.
/// Each element of C is one chain of additions in rising k, so it does not depend on how C or k is cut into calls.
struct GemmBlock {
  const uint32_t* a = nullptr;
  int64_t a_row_stride = 0;
  int64_t a_step_stride = 0;
  int64_t a_group_stride = 0;
  const uint32_t* b = nullptr;
  int64_t b_panel_stride = 0;
  void* c = nullptr;
  int64_t c_stride = 0;  // elements
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t steps = 0;
  bool pairs = false;  // only on paths with bf16 products
  DType c_dtype = DType::kF32;
  bool accumulate = false;     // start from C's contents
  float alpha = 1;             // factor of the sums after the last step, before the bias
  const void* bias = nullptr;  // (cols) added to each row after the last step, unless null
  DType bias_dtype = DType::kF32;
  Triangle left_out = Triangle::kNone;
  int64_t diagonal = 0;
};

ZF_DECLARE_KERNEL(void gemm_block(const GemmBlock& block))

}  // namespace zerofleet::cpu
