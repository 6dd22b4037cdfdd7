#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

struct SoftCapArgs {
  float cap = 0;
  ConstRows x;  // (rows, cols)
  Rows y;       // (rows, cols); may be x
  int64_t rows = 0;
  int64_t cols = 0;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void soft_cap_rows(const SoftCapArgs& args))

}  // namespace zerofleet::cpu
