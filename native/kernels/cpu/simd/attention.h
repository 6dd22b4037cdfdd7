#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

/// The element-wise parts of causal attention over a block of query rows. Row r sees the first `first_valid + r` keys;
/// what is beyond them, up to `padded`, is written as zero.
struct AttentionRowsArgs {
  float* scores = nullptr;        // (rows, keys) q · k, not yet scaled; the forward overwrites them
  const float* dprobs = nullptr;  // (rows, keys) backward: gradient of the probabilities
  int64_t scores_stride = 0;      // of both
  float scale = 0;
  float* lse = nullptr;          // (rows) ln Σ exp(scaled score): written by the forward, read by the backward
  const float* delta = nullptr;  // (rows) backward: Σ of probability · its gradient
  void* probs = nullptr;         // (rows, padded)
  void* dscores = nullptr;       // (rows, padded) backward: gradient of the unscaled scores
  int64_t probs_stride = 0;      // elements, of both
  int64_t rows = 0;
  int64_t first_valid = 0;
  int64_t padded = 0;
  DType probs_dtype = DType::kF32;  // of dscores too
};

/// dots[r] = Σ over cols of a[r] · b[r].
struct RowDotArgs {
  const void* a = nullptr;  // (rows, cols)
  int64_t a_stride = 0;
  const void* b = nullptr;
  int64_t b_stride = 0;
  float* dots = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void attention_softmax_rows(const AttentionRowsArgs& args))
ZF_DECLARE_KERNEL(void attention_backward_rows(const AttentionRowsArgs& args))
ZF_DECLARE_KERNEL(void row_dots(const RowDotArgs& args))

}  // namespace zerofleet::cpu
