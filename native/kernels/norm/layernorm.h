#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// y = (s − mean) · rstd · weight + bias with s = x + delta (or x), the mean and rstd = 1 / sqrt(mean((s − mean)²) +
/// eps) of each row, in fp32 inside.
struct LayerNormForward {
  ConstMatrix x;                 // (M, D)
  ConstMatrix delta;             // (M, D), or no data
  Matrix sum;                    // (M, D) s rounded to the dtype; used with delta only
  const void* weight = nullptr;  // (D) of x's dtype
  const void* bias = nullptr;    // (D) of x's dtype
  double eps = 0;
  Matrix y;               // (M, D)
  std::span<float> mean;  // (M)
  std::span<float> rstd;  // (M)
};

/// dx = residual + gradient through the norm. The sums dweight and dbias go over rows, in chunks of 64 rows that are
/// added in order. On CUDA devices the order depends on the shape alone.
struct LayerNormBackward {
  ConstMatrix dy;                // (M, D)
  ConstMatrix x;                 // (M, D) the input of the normalisation: s above
  const void* weight = nullptr;  // (D)
  std::span<const float> mean;   // (M)
  std::span<const float> rstd;   // (M)
  ConstMatrix residual;          // (M, D), or no data; may be dx
  Matrix dx;                     // (M, D)
  std::span<float> dweight;      // (D), or empty with dbias: not computed
  std::span<float> dbias;        // (D)
};

/// Both throw Error{"invalid_argument"} where shapes or types do not fit.
void layernorm(const Context& ctx, const LayerNormForward& args);
void layernorm_backward(const Context& ctx, const LayerNormBackward& args);

}  // namespace zerofleet
