#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// The RMS norm of queries and keys (QK-norm). Each head's head_dim values x of each row are normalised by themselves:
/// y = x · rstd · (weight_offset + weight) with rstd = 1 / sqrt(mean(x²) + eps). All heads share one weight.
struct HeadNormForward {
  ConstMatrix x;                 // (M, H · head_dim): heads side by side
  const void* weight = nullptr;  // (head_dim) of x's dtype
  std::int64_t head_dim = 0;
  double eps = 0;
  Matrix y;               // (M, H · head_dim); may be x
  std::span<float> rstd;  // (H, M)
  double weight_offset = 0;
};

/// dweight is summed in chunks of 64 rows, each head by itself. The chunks' sums are added in order of chunks, then
/// heads. On CUDA devices the order depends on the shape alone.
struct HeadNormBackward {
  ConstMatrix dy;                // (M, H · head_dim)
  ConstMatrix x;                 // (M, H · head_dim) of the forward
  const void* weight = nullptr;  // (head_dim)
  std::int64_t head_dim = 0;
  std::span<const float> rstd;  // (H, M)
  Matrix dx;                    // (M, H · head_dim); may be dy
  std::span<float> dweight;     // (head_dim), or empty: not computed
  double weight_offset = 0;
};

/// Both throw Error{"invalid_argument"} where shapes or types do not fit.
void head_norm(const Context& ctx, const HeadNormForward& args);
void head_norm_backward(const Context& ctx, const HeadNormBackward& args);

}  // namespace zerofleet
