#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Activation of the gate of a gated linear unit.
enum class GluKind : std::uint8_t {
  kSilu,      // SwiGLU
  kGeluTanh,  // GeGLU with "gelu_pytorch_tanh", GeluKind::kTanh
};

/// act = f(gate) · up. gate_up: (M, 2 · I), the gate's columns first; act: (M, I).
void glu(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const Matrix& act);

/// dgate_up: (M, 2 · I) from dact: (M, I).
void glu_backward(const Context& ctx, GluKind kind, const ConstMatrix& gate_up, const ConstMatrix& dact,
                  const Matrix& dgate_up);

// Both throw Error{"invalid_argument"} where shapes or types do not fit.

}  // namespace zerofleet
