#pragma once

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// y += sigmoid(gate) · x, rounded once. gate: (M, 1); x, y: (M, N) of one dtype.
void add_gated(const Context& ctx, const ConstMatrix& gate, const ConstMatrix& x, const Matrix& y);

/// dx = sigmoid(gate) · dy, and dgate[m] = sigmoid'(gate[m]) · Σ over columns of dy[m] · x[m].
struct GatedBackward {
  ConstMatrix gate;  // (M, 1)
  ConstMatrix x;     // (M, N)
  ConstMatrix dy;    // (M, N)
  Matrix dx;         // (M, N)
  Matrix dgate;      // (M, 1)
};
void add_gated_backward(const Context& ctx, const GatedBackward& args);

// Both throw Error{"invalid_argument"} where shapes or types do not fit.

}  // namespace zerofleet
