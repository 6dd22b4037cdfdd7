#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Turns a row-major source into the words that gemm_block() reads (see simd/gemm.h for words and panels). Elements
/// beyond the source's last row or column up to the end of a word, or of a panel, become zero.
struct PackArgs {
  const void* source = nullptr;  // (rows, cols)
  int64_t source_stride = 0;     // elements from row to row
  int64_t rows = 0;
  int64_t cols = 0;
  uint32_t* target = nullptr;
  int64_t target_stride = 0;  // words from panel to panel, or from row to row for copy_words
  DType source_dtype = DType::kF32;
  bool pairs = false;  // words are pairs of bf16; the source must be bf16. Otherwise words are fp32
};

/// Rows of the source are k, columns are n.
ZF_DECLARE_KERNEL(void pack_k_rows(const PackArgs& args))
/// Rows of the source are n, columns are k.
ZF_DECLARE_KERNEL(void pack_k_cols(const PackArgs& args))
/// Columns of the source are k; the target is row-major too.
ZF_DECLARE_KERNEL(void copy_words(const PackArgs& args))

}  // namespace zerofleet::cpu
