#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

/// The right operand of a product in its memory layout: k in one or more parts, all with the same layout.
struct RightOperand {
  SourceRows rows = SourceRows::kAlongK;
  std::vector<ConstMatrix> parts;  // (k of the part, n) for kAlongK, (n, k of the part) for kAlongN

  std::int64_t k_of(std::size_t part) const {
    return rows == SourceRows::kAlongK ? parts[part].rows : parts[part].cols;
  }
};

/// B of a problem, packed or not; neighbours in memory become one part.
/// Throws Error{"invalid_argument"} where parts of a packed operand are missing or lie differently.
RightOperand right_operand(const GemmProblem& problem);

}  // namespace zerofleet::cuda
