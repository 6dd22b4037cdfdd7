#pragma once

#include <stdint.h>

#include "kernels/cpu/simd/declare.h"

namespace zerofleet::cpu {

/// Rounds (or copies) a row-major fp32 matrix to bf16 (or fp32).
struct ConvertArgs {
  const float* source = nullptr;  // (rows, cols)
  int64_t source_stride = 0;      // elements
  void* target = nullptr;
  int64_t target_stride = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  bool target_is_bf16 = false;
};

ZF_DECLARE_KERNEL(void convert_rows(const ConvertArgs& args))

}  // namespace zerofleet::cpu
