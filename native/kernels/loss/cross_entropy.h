#pragma once

#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/common/indices.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Softmax cross-entropy of a chunk of rows: losses[r] = ln Σ exp(logits[r]) − logits[r][target], 0 where the target is
/// negative, and the gradient of grad_scale · Σ factors[r] · losses[r].
struct CrossEntropy {
  Matrix logits;            // (R, V) fp32; overwritten
  Indices targets;          // (R) below V
  std::span<float> losses;  // (R)
  Matrix dlogits;           // (R, V), or no data for the loss alone; may share the memory of logits row by row
  float grad_scale = 0;
  float soft_cap = 0;  // the logits were capped (kernels/common/formulas/soft_cap.h): dlogits is before it; 0: not
  std::span<const float> factors = {};  // (R) where kernels read them; empty: all are 1
};

/// Throws Error{"invalid_argument"} where shapes or types do not fit.
void cross_entropy(const Context& ctx, const CrossEntropy& args);

}  // namespace zerofleet
