#pragma once

#include <cmath>

#include "core/host_device.h"

namespace zerofleet::cuda {

/// Single numbers as formulas compute with them (kernels/common/formulas/arithmetic.h). CUDA's exp is within 2 ulp.
struct FloatArithmetic {
  using Value = float;

  ZF_FORMULA static float set(float x) { return x; }
  ZF_FORMULA static float select(bool mask, float yes, float no) { return mask ? yes : no; }
  ZF_FORMULA static float min(float a, float b) { return a < b ? a : b; }
  ZF_FORMULA static float max(float a, float b) { return a > b ? a : b; }
  ZF_FORMULA static float abs(float x) { return fabsf(x); }
  ZF_FORMULA static float fma(float a, float b, float c) { return fmaf(a, b, c); }
  ZF_FORMULA static float exp(float x) { return expf(x); }
  ZF_FORMULA static float sqrt(float x) { return sqrtf(x); }
  ZF_FORMULA static float flushed(float x) { return fabsf(x) < 0x1p-126F ? 0.0F : x; }
};

}  // namespace zerofleet::cuda
