#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Converts a row-major source to the words that gemm_block() reads (see simd/gemm.h). Words and panels are filled up
/// with zeros beyond the source's last row and column.
struct PackArgs {
  const void* source = nullptr;  // (rows, cols)
  int64_t source_stride = 0;     // elements from row to row
  int64_t rows = 0;
  int64_t cols = 0;
  uint32_t* target = nullptr;
  int64_t target_stride = 0;  // words from panel to panel, or from row to row for copy_words
  DType source_dtype = DType::kF32;
  bool pairs = false;  // words are pairs of bf16, which requires a bf16 source; otherwise words are fp32
};

/// The source is (k, n).
ZF_DECLARE_KERNEL(void pack_k_rows(const PackArgs& args))
/// The source is (n, k).
ZF_DECLARE_KERNEL(void pack_k_cols(const PackArgs& args))
/// The source's columns are k. The target is row-major, too.
ZF_DECLARE_KERNEL(void copy_words(const PackArgs& args))

}  // namespace zerofleet::cpu
