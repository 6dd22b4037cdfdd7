#pragma once

#include <cstddef>

#include "core/device/context.h"
#include "kernels/common/cuda/temporary.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

inline bool is_quantized(const GemmProblem& problem) { return problem.source != nullptr && !problem.source->quantized.empty(); }

/// A product with a quantized B, and all of B as one matrix of A's dtype: k · n elements of the device's memory, taken and given back in
/// the order of the stream. It is not restored by slices: the library chooses its algorithm, and so the order of its sums, by the shape of
/// the whole product.
class RestoredProblem {
 public:
  RestoredProblem(const Context& ctx, const GemmProblem& quantized);
  RestoredProblem(const RestoredProblem&) = delete;
  RestoredProblem& operator=(const RestoredProblem&) = delete;

  /// The same product with this B; valid as long as this object is.
  const GemmProblem& problem() const { return problem_; }

 private:
  Temporary<std::byte> bytes_;
  SourceOperand source_;
  GemmProblem problem_;
};

}  // namespace zerofleet::cuda
