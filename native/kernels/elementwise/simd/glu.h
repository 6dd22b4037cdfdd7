#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows of gate_up hold the gate's columns first, then the up projection's.
struct GluArgs {
  ConstRows gate_up;  // (rows, 2 · cols)
  Rows act;           // (rows, cols) forward: result
  ConstRows dact;     // (rows, cols) backward: gradient of act
  Rows dgate_up;      // (rows, 2 · cols) backward: result
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void swiglu_rows(const GluArgs& args))
ZF_DECLARE_KERNEL(void swiglu_backward_rows(const GluArgs& args))
ZF_DECLARE_KERNEL(void geglu_tanh_rows(const GluArgs& args))
ZF_DECLARE_KERNEL(void geglu_tanh_backward_rows(const GluArgs& args))

}  // namespace zerofleet::cpu
