#include "kernels/gemm/cuda/operands.h"

#include <cstddef>

#include "core/error.h"

namespace zerofleet::cuda {
namespace {

/// Returns true if `next` continues `part` in memory, so that both are one matrix.
bool continues(SourceRows rows, const ConstMatrix& part, const ConstMatrix& next) {
  if (part.stride != next.stride) return false;
  return next.data == (rows == SourceRows::kAlongK ? part.at(part.rows, 0) : part.at(0, part.cols));
}

void add(RightOperand& operand, const ConstMatrix& next) {
  if (!operand.parts.empty() && continues(operand.rows, operand.parts.back(), next)) {
    ConstMatrix& last = operand.parts.back();
    (operand.rows == SourceRows::kAlongK ? last.rows : last.cols) +=
        operand.rows == SourceRows::kAlongK ? next.rows : next.cols;
    return;
  }
  operand.parts.push_back(next);
}

}  // namespace

RightOperand right_operand(const GemmProblem& problem) {
  RightOperand operand;
  if (problem.source != nullptr) {
    operand.rows = problem.source->rows;
    for (const ConstMatrix& part : problem.source->parts) add(operand, part);
    return operand;
  }
  std::int64_t k = 0;
  for (const PackedMatrix::Part& part : problem.b->parts()) {
    if (k == 0) operand.rows = part.rows;
    require(part.k_begin == k && part.rows == operand.rows, "invalid_argument",
            "gemm: the parts of a packed operand leave a gap, or lie differently");
    k += part.rows == SourceRows::kAlongK ? part.source.rows : part.source.cols;
    add(operand, part.source);
  }
  require(k == problem.b->k(), "invalid_argument", "gemm: a packed operand is not filled");
  return operand;
}

}  // namespace zerofleet::cuda
