#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Number of columns in a panel of a packed operand.
constexpr int64_t kPanel = 32;

/// Part that a product with a triangle of zeros may skip, in whole tiles. `diagonal` shifts the triangle.
enum class Triangle : uint8_t {
  kNone,
  kColsAbove,   // columns of C beyond diagonal + row are not needed, and need not be written
  kStepsAbove,  // A is zero where k > diagonal + row
  kStepsBelow,  // A is zero where k < row - diagonal
};

/// C (rows, cols) = A (rows, steps) · B (steps, cols), single-threaded, over operands of 32-bit words.
///
/// A word is one fp32 element, or with pairs two bf16 elements that are neighbours in k. B is packed in panels of 32
/// columns. Each panel consists of [step][32 columns] words, zero beyond the last column. The address of a word of A is
///   a + (row / 32) · a_group_stride + (row % 32) · a_row_stride + step · a_step_stride.
/// This formula covers row-major matrices (consecutive steps) and packed ones (consecutive rows). If B is widened,
/// A has two words for each of its steps.
///
/// Each element of C is one chain of additions in ascending k, so it does not depend on how C or k is divided into
/// calls.
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
  bool pairs = false;    // requires a path with bf16 products, unless they are widened
  bool widened = false;  // only B has pairs, and is widened to fp32
  DType c_dtype = DType::kF32;
  bool accumulate = false;     // adds to the contents of C
  float alpha = 1;             // factor of the sums, applied before the bias
  const void* bias = nullptr;  // (cols) added to each row after the last step; null: none
  DType bias_dtype = DType::kF32;
  Triangle left_out = Triangle::kNone;
  int64_t diagonal = 0;
};

ZF_DECLARE_KERNEL(void gemm_block(const GemmBlock& block))

}  // namespace zerofleet::cpu
