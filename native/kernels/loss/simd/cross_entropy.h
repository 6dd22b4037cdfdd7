#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows of softmax cross-entropy: loss = ln Σ exp(logits) − logits[target], and the gradient of grad_scale · factor ·
/// loss.
struct CrossEntropyArgs {
  float* logits = nullptr;  // (rows, cols) overwritten if a gradient is requested
  int64_t logits_stride = 0;
  const int32_t* targets = nullptr;  // (rows) below 0: the row does not count; loss and gradient are 0
  float* losses = nullptr;           // (rows)
  Rows dlogits;                      // (rows, cols), null for the loss alone; may lie over logits, row on row
  float grad_scale = 0;
  const float* factors = nullptr;  // (rows), or null: 1
  float soft_cap = 0;              // of the logits: dlogits is before it; 0: none
  int64_t rows = 0;
  int64_t cols = 0;
  DType dlogits_dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void cross_entropy_rows(const CrossEntropyArgs& args))

}  // namespace zerofleet::cpu
