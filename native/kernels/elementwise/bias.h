#pragma once

#include <span>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// dbias[n] = Σ over rows of dy[m][n] in fp32. Chunks of 64 rows, each in rising m, are added in order. On CUDA devices
/// chunks are added in another order, which depends on their number alone.
/// With `accumulate` they are added to the old contents. So a CPU's sums over parts of whole chunks have the bits of
/// one sum. dy: (M, N); dbias: (N). The forward's bias is GemmProblem::bias. Throws Error{"invalid_argument"} where the
/// sizes do not fit.
void bias_gradient(const Context& ctx, const ConstMatrix& dy, std::span<float> dbias, bool accumulate = false);

}  // namespace zerofleet
