#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// The element-wise parts of causal attention over a block of query rows and a block of keys. Row r sees the keys
/// before `first_valid + r`, of which there are `keys` in the block, from first_keys[r] on; all other probabilities up
/// to `padded` are written as zero.
struct AttentionRowsArgs {
  float* scores = nullptr;        // (rows, keys) q · k, not yet scaled; overwritten
  const float* dprobs = nullptr;  // (rows, keys) backward: gradient of the probabilities
  int64_t scores_stride = 0;      // of both
  float scale = 0;
  float soft_cap = 0;            // of the scaled scores; 0: none
  float* top = nullptr;          // (rows) forward: largest score of this and earlier blocks, at first -∞
  float* total = nullptr;        // (rows) forward: Σ exp(scaled score − top) over them, at first 0
  float* sums = nullptr;         // (rows, sums_cols) forward: the sums of earlier blocks, rescaled to the new top
  int64_t sums_cols = 0;         // 0: this is the first block
  const float* lse = nullptr;    // (rows) backward: ln Σ exp(scaled score)
  const float* delta = nullptr;  // (rows) backward: Σ of probability · its gradient
  void* probs = nullptr;         // (rows, padded) forward: exp(scaled score − top), backward: the probabilities
  void* dscores = nullptr;       // (rows, padded) backward: gradient of the unscaled scores
  int64_t probs_stride = 0;      // elements, of both
  int64_t rows = 0;
  int64_t keys = 0;
  int64_t first_valid = 0;
  const int64_t* first_keys = nullptr;  // (rows) less `first_key`; null: none is hidden
  int64_t first_key = 0;
  int64_t padded = 0;
  DType probs_dtype = DType::kF32;  // of dscores too
};

/// The end of a forward: out = sums / total, lse = top + ln(total).
struct AttentionFinishArgs {
  const float* top = nullptr;    // (rows)
  const float* total = nullptr;  // (rows)
  const float* sums = nullptr;   // (rows, cols)
  Rows out;                      // (rows, cols)
  float* lse = nullptr;          // (rows)
  int64_t rows = 0;
  int64_t cols = 0;
  DType out_dtype = DType::kF32;
};

/// dots[r] = Σ over cols of a[r] · b[r].
struct RowDotArgs {
  ConstRows a;  // (rows, cols)
  ConstRows b;
  float* dots = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void attention_softmax_rows(const AttentionRowsArgs& args))
ZF_DECLARE_KERNEL(void attention_finish_rows(const AttentionFinishArgs& args))
ZF_DECLARE_KERNEL(void attention_backward_rows(const AttentionRowsArgs& args))
ZF_DECLARE_KERNEL(void row_dots(const RowDotArgs& args))

}  // namespace zerofleet::cpu
