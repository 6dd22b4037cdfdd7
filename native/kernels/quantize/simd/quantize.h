#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"
#include "kernels/common/simd/rows.h"
#include "kernels/quantize/formulas/blocks.h"

namespace zerofleet::cpu {

/// Quantizes the blocks of one group, with their scales.
ZF_DECLARE_KERNEL(void quantize_group(const ConstRows& source, DType dtype, const QuantBlocks& target, int64_t group))

/// A rectangle of a quantized matrix that begins with a block.
struct UnpackArgs {
  ConstQuantBlocks source;
  int64_t row = 0;
  int64_t num_rows = 0;
  int64_t block = 0;  // of a row
  int64_t cols = 0;   // from the block's first element on
  Rows target;
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void unpack_rows(const UnpackArgs& args))

}  // namespace zerofleet::cpu
