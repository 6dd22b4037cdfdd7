#pragma once

#include <stdint.h>

#include "kernels/common/simd/declare.h"

namespace zerofleet::cpu {

/// weights = exp((logits − largest) · factor).
struct DrawWeightsArgs {
  const float* logits = nullptr;  // (count)
  float* weights = nullptr;       // (count)
  int64_t count = 0;
  float largest = 0;
  float factor = 1;
};

ZF_DECLARE_KERNEL(void draw_weights(const DrawWeightsArgs& args))

}  // namespace zerofleet::cpu
