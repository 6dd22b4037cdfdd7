#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet::cuda {

/// Backward of a norm over rows, or over the parts of rows that are heads. For x̂ = (x − mean) · rstd and g = dy ·
/// (weight_offset + weight): dx = residual + rstd · (g − mean(g) − x̂ · mean(g · x̂)); without means x̂ = x · rstd, and
/// mean(g) is left out.
struct NormBackward {
  ConstMatrix dy, x;             // (M, H · D)
  const void* weight = nullptr;  // (D)
  double weight_offset = 0;
  const float* mean = nullptr;  // (H, M), or null
  const float* rstd = nullptr;  // (H, M)
  ConstMatrix residual;         // (M, H · D), or no data; may be dx
  Matrix dx;                    // (M, H · D); may be dy
  std::int64_t cols = 0;        // D
  float* dweight = nullptr;     // (D), or null: neither it nor dbias is computed
  float* dbias = nullptr;       // (D), with means
};

/// `name` is for errors.
void norm_backward(const Context& ctx, const char* name, const NormBackward& args);

}  // namespace zerofleet::cuda
