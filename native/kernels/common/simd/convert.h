#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Rounds a row-major fp32 matrix to another type, or copies it.
struct ConvertArgs {
  const float* source = nullptr;  // (rows, cols)
  int64_t source_stride = 0;      // elements
  void* target = nullptr;
  int64_t target_stride = 0;
  int64_t rows = 0;
  int64_t cols = 0;
  DType target_dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void convert_rows(const ConvertArgs& args))

}  // namespace zerofleet::cpu
