#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// Rotates the heads of some rows in place: the pairs (x1, x2) of a head's first rotary_dim elements become
/// (x1·c − x2·s, x2·c + x1·s).
struct RopeArgs {
  void* x = nullptr;  // (rows, heads · head_dim) at the start of each row
  int64_t stride = 0;
  const float* cosine = nullptr;  // (positions, rotary_dim / 2)
  const float* sine = nullptr;
  const int32_t* positions = nullptr;  // (rows), or null:
  int64_t first_position = 0;          // of the first row
  int64_t num_positions = 0;           // a row's position is (first_position + row) mod num_positions
  int64_t rows = 0;
  int64_t heads = 0;
  int64_t head_dim = 0;
  int64_t rotary_dim = 0;
  bool interleaved = false;  // elements 2i and 2i + 1 are a pair; else element i of both halves
  bool inverse = false;      // rotate back: the gradient
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void rope_rows(const RopeArgs& args))

}  // namespace zerofleet::cpu
