#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"
#include "kernels/matrix.h"
#include "kernels/packed_matrix.h"
#include "kernels/scratch.h"

namespace zerofleet {

/// C (m, n) = A · B + bias, plus C's old contents with `accumulate`.
struct GemmProblem {
  ConstMatrix a;          // (m, k), or with a_transposed its transpose (k, m); dtype of b
  const PackedMatrix* b;  // (k, n)
  Matrix c;               // (m, n)
  bool a_transposed = false;
  bool accumulate = false;     // fp32 C only
  const void* bias = nullptr;  // (n) of c's dtype, or null: added to each row in fp32, after the sum over k
};

/// Computes all problems, which must be independent of each other, as one parallel section. Products are summed in fp32
/// in rising k, one chain per element of C, so a result depends on neither threads nor tiles.
/// Throws Error{"invalid_argument"} where shapes or types do not fit.
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);

}  // namespace zerofleet
