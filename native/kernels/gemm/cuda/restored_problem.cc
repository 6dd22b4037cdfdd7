#include "kernels/gemm/cuda/restored_problem.h"

#include "kernels/quantize/quantized_matrix.h"

namespace zerofleet::cuda {
namespace {

std::size_t bytes_of(const GemmProblem& problem) {
  return static_cast<std::size_t>(problem.source->k() * problem.source->n()) * size_of(problem.a.dtype);
}

}  // namespace

RestoredProblem::RestoredProblem(const Context& ctx, const GemmProblem& quantized)
    : bytes_(ctx, bytes_of(quantized)), source_{{}, quantized.source->rows}, problem_(quantized) {
  const SourceOperand& from = *quantized.source;
  const bool along_k = from.rows == SourceRows::kAlongK;
  const std::int64_t rows = along_k ? from.k() : from.n(), cols = along_k ? from.n() : from.k();
  const Matrix all{bytes_.data(), quantized.a.dtype, rows, cols, cols};
  std::int64_t k = 0;
  for (std::size_t index = 0; index < from.parts.size(); ++index) {
    const ConstMatrix& part = from.parts[index];
    const Matrix target{along_k ? all.at(k, 0) : all.at(0, k), all.dtype, part.rows, part.cols, cols};
    dequantize(ctx, *from.quantized[index], target);
    k += along_k ? part.rows : part.cols;
  }
  source_.parts = {all};
  problem_.source = &source_;
}

}  // namespace zerofleet::cuda
