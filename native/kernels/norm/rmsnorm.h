#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// y = s · rstd · (weight_offset + weight) with s = x + delta (or x) and rstd = 1 / sqrt(mean(s²) + eps) over each row,
/// in fp32 inside.
struct RmsNormForward {
  ConstMatrix x;                 // (M, D)
  ConstMatrix delta;             // (M, D), or no data
  Matrix sum;                    // (M, D) s rounded to the dtype; used with delta only
  const void* weight = nullptr;  // (D) of x's dtype
  double eps = 0;
  Matrix y;               // (M, D)
  std::span<float> rstd;  // (M)
  double weight_offset = 0;
};

/// dx = residual + gradient through the norm. The sum dweight goes over rows, in chunks of 64 rows that are added in
/// order. On CUDA devices the order depends on the shape alone.
struct RmsNormBackward {
  ConstMatrix dy;                // (M, D)
  ConstMatrix x;                 // (M, D) the input of the normalisation: s above
  const void* weight = nullptr;  // (D)
  std::span<const float> rstd;   // (M)
  ConstMatrix residual;          // (M, D), or no data; may be dx
  Matrix dx;                     // (M, D)
  std::span<float> dweight;      // (D), or empty: not computed
  double weight_offset = 0;
};

/// Both throw Error{"invalid_argument"} where shapes or types do not fit.
void rmsnorm(const Context& ctx, const RmsNormForward& args);
void rmsnorm_backward(const Context& ctx, const RmsNormBackward& args);

}  // namespace zerofleet
