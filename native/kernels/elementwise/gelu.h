#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Form of x · Φ(x), Φ the standard normal distribution's probability of a value up to x.
enum class GeluKind : std::uint8_t {
  kExact,  // "gelu"
  kTanh,   // "gelu_new": x / 2 · (1 + tanh(sqrt(2 / π) · (x + 0.044715 x³)))
};

/// y = gelu(x). x, y: (M, N) of one dtype; y may be x.
void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y);

/// dx = dy · gelu'(x). x, dy, dx: (M, N) of one dtype; dx may be dy or x.
void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx);

// Both throw Error{"invalid_argument"} where shapes or types do not fit.

}  // namespace zerofleet
