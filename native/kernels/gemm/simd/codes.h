#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "core/quant_format.h"
#include "kernels/common/simd/declare.h"
#include "kernels/gemm/simd/gemm.h"
#include "kernels/quantize/formulas/blocks.h"

namespace zerofleet::cpu {

/// A block of packed codes has 64 k of the 32 columns of a panel, in the order of the words that gemm_block() reads:
///   scales   fp32: 32 of the columns, or 64 of the k if the matrix's rows are k
///   rows     64 of 32 codes. With pairs, rows 2·i and 2·i + 1 are the 16 words of either half of step i, each two
///   codes
///            that are neighbours in k. Otherwise a row is one k.
/// A row has 32 bytes in int8. In nf4 it has 16, whose byte i has the codes i (low half) and i + 16. Codes beyond the
/// end of the matrix are those of zero, and so are scales.
constexpr int kCodeRows = kQuantBlock;

constexpr int64_t code_row_bytes(QuantFormat format) { return format == QuantFormat::kNf4 ? kPanel / 2 : kPanel; }
constexpr int64_t num_scales(bool scales_of_k) { return scales_of_k ? kQuantBlock : kPanel; }
constexpr int64_t code_block_bytes(QuantFormat format, bool scales_of_k) {
  return num_scales(scales_of_k) * static_cast<int64_t>(sizeof(float)) + kCodeRows * code_row_bytes(format);
}

struct RestoreArgs {
  const uint8_t* block = nullptr;  // the first one
  QuantFormat format = QuantFormat::kInt8;
  bool scales_of_k = false;
  bool pairs = false;         // words are pairs of bf16, which requires a path with bf16 products; otherwise fp32
  DType dtype = DType::kF32;  // that elements are rounded to
  bool specials = false;      // some elements may be NaN or subnormal
  int64_t num_rows = 0;       // of codes, in consecutive blocks
  uint32_t* target = nullptr;
};

/// Restores the words of a panel: level · scale, rounded to nearest even, with the bits of unpack_rows().
ZF_DECLARE_KERNEL(void restore_codes(const RestoreArgs& args))

/// Most rows that multiply_codes() takes.
constexpr int64_t kCodeProductRows = 4;

/// Adds the product of a few rows of A with a panel to `sums`. Each sum is the chain of additions of gemm_block().
struct CodeProduct {
  RestoreArgs panel;            // without a target; not with scales_of_k
  const uint32_t* a = nullptr;  // words as those of the panel
  int64_t a_row_stride = 0;
  int64_t rows = 0;
  float* sums = nullptr;  // (rows, 32)
};

/// The restored words stay in registers. With so few rows, writing and reading them would take a third of the time.
ZF_DECLARE_KERNEL(void multiply_codes(const CodeProduct& product))

}  // namespace zerofleet::cpu
