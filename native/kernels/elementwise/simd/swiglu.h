#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Rows of gate_up hold the gate's columns first, then the up projection's.
struct SwigluArgs {
  const void* gate_up = nullptr;  // (rows, 2 · cols)
  int64_t gate_up_stride = 0;
  void* act = nullptr;         // (rows, cols) forward: result
  const void* dact = nullptr;  // (rows, cols) backward: gradient of act
  int64_t act_stride = 0;      // of act or dact
  void* dgate_up = nullptr;    // (rows, 2 · cols) backward: result
  int64_t dgate_up_stride = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void swiglu_rows(const SwigluArgs& args))
ZF_DECLARE_KERNEL(void swiglu_backward_rows(const SwigluArgs& args))

}  // namespace zerofleet::cpu
