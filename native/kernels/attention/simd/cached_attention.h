#pragma once

#include <stdint.h>

#include "core/dtype_enum.h"
#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// A query of one head over `num_keys` keys.
struct CachedQueryArgs {
  const void* query = nullptr;  // (head_dim)
  const void* keys = nullptr;   // (num_keys, head_dim)
  const void* values = nullptr;
  int64_t stride = 0;  // of keys and values
  int64_t num_keys = 0;
  int64_t head_dim = 0;
  float scale = 1;
  float* probs = nullptr;  // (num_keys) work space
  float* sums = nullptr;   // (head_dim) work space
  void* out = nullptr;     // (head_dim)
  DType dtype = DType::kF32;
};

ZF_DECLARE_KERNEL(void cached_query(const CachedQueryArgs& args))

}  // namespace zerofleet::cpu
