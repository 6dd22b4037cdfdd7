#pragma once

#include <cstddef>

#include "core/device/context.h"
#include "kernels/common/cuda/temporary.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

inline bool is_quantized(const GemmProblem& problem) {
  return problem.source != nullptr && !problem.source->quantized.empty();
}

/// A product with a quantized B, and the dequantized B as one matrix of A's dtype. The matrix takes k · n elements of
/// device memory, allocated and freed in the order of the stream.
///
/// B is not dequantized by slices, because the library chooses its algorithm, and so the order of its sums, by the
/// shape of the whole product.
class RestoredProblem {
 public:
  RestoredProblem(const Context& ctx, const GemmProblem& quantized);
  RestoredProblem(const RestoredProblem&) = delete;
  RestoredProblem& operator=(const RestoredProblem&) = delete;

  /// The same product with the dequantized B. Valid during the lifetime of this object.
  const GemmProblem& problem() const { return problem_; }

 private:
  Temporary<std::byte> bytes_;
  SourceOperand source_;
  GemmProblem problem_;
};

}  // namespace zerofleet::cuda
