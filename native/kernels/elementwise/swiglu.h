#pragma once

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// act = silu(gate) · up. gate_up: (M, 2 · I), the gate's columns first; act: (M, I).
void swiglu(const Context& ctx, const ConstMatrix& gate_up, const Matrix& act);

/// dgate_up: (M, 2 · I) from dact: (M, I).
void swiglu_backward(const Context& ctx, const ConstMatrix& gate_up, const ConstMatrix& dact, const Matrix& dgate_up);

// Both throw Error{"invalid_argument"} where shapes or types do not fit.

}  // namespace zerofleet
