#pragma once

#include <cstdint>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

/// The right operand of a product in its memory layout: one or more parts along k, all with the same layout.
struct RightOperand {
  SourceRows rows = SourceRows::kAlongK;
  std::vector<ConstMatrix> parts;  // (k of the part, n) for kAlongK, (n, k of the part) for kAlongN

  std::int64_t k_of(std::size_t part) const {
    return rows == SourceRows::kAlongK ? parts[part].rows : parts[part].cols;
  }
};

/// Returns B of a problem, packed or not. Parts that are neighbours in memory become one. Throws
/// Error{"invalid_argument"} if a packed operand lacks parts, or if their layouts differ.
RightOperand right_operand(const GemmProblem& problem);

}  // namespace zerofleet::cuda
