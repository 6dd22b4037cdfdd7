#pragma once

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// y = cap · tanh(x / cap), for cap above 0. x, y: (M, N) of one dtype; y may be x. Throws Error{"invalid_argument"}
/// where they do not fit.
void soft_cap(const Context& ctx, double cap, const ConstMatrix& x, const Matrix& y);

}  // namespace zerofleet
