#pragma once

#include "core/device/context.h"
#include "kernels/gemm/cuda/operands.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

/// Computes a product of any shape and types. `right`: right_operand() of the problem.
void plain_gemm(const Context& ctx, const GemmProblem& problem, const RightOperand& right);

/// c = sums + bias. sums: (m, n) fp32; bias: (n) of c's dtype, or null; c: (m, n).
void round_sums(const Context& ctx, const ConstMatrix& sums, const void* bias, const Matrix& c);

}  // namespace zerofleet::cuda
