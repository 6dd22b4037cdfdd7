#include "kernels/gemm/gemm.h"

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

using Epilogue = GemmEpilogue::Kind;

bool is_quantized_part(const SourceOperand& source, const ConstMatrix& part) {
  if (source.quantized.size() != source.parts.size()) return false;
  const QuantizedMatrix* matrix = source.quantized[static_cast<std::size_t>(&part - source.parts.data())];
  return matrix != nullptr && matrix->rows() == part.rows && matrix->cols() == part.cols;
}

void check_source(const SourceOperand& source, DType dtype) {
  require(!source.parts.empty(), "invalid_argument", "gemm: B has no part");
  for (const ConstMatrix& part : source.parts) {
    const bool is_there = source.quantized.empty() ? part.data != nullptr : is_quantized_part(source, part);
    require(is_there && part.dtype == dtype, "invalid_argument", "gemm: a part of B is missing or of another dtype");
    const bool along_k = source.rows == SourceRows::kAlongK;
    require((along_k ? part.cols : part.rows) == source.n(), "invalid_argument", "gemm: parts of B differ in columns");
    require((along_k ? part.rows : part.cols) % 2 == 0 || &part == &source.parts.back(), "invalid_argument",
            "gemm: a part of B with an odd k before another");
  }
}

void check(const GemmProblem& problem) {
  const int operands = (problem.b != nullptr) + (problem.source != nullptr) + (problem.codes != nullptr);
  require(operands == 1 && problem.a.data != nullptr && problem.c.data != nullptr, "invalid_argument",
          "gemm: an operand is missing, or there are two");
  require(problem.b != nullptr || !problem.a_transposed, "invalid_argument", "gemm: a transposed A needs a packed B");
  if (problem.source != nullptr) check_source(*problem.source, problem.a.dtype);
  const std::int64_t m = problem.a_transposed ? problem.a.cols : problem.a.rows;
  const std::int64_t k = problem.a_transposed ? problem.a.rows : problem.a.cols;
  const std::int64_t b_k = problem.b_k(), b_n = problem.b_n();
  require(k == b_k && m == problem.c.rows && b_n == problem.c.cols, "invalid_argument",
          "gemm: (" + std::to_string(m) + ", " + std::to_string(k) + ") by (" + std::to_string(b_k) + ", " +
              std::to_string(b_n) + ") into (" + std::to_string(problem.c.rows) + ", " +
              std::to_string(problem.c.cols) + ")");
  require((!problem.b || problem.a.dtype == problem.b->dtype()) &&
              (!problem.codes || (problem.a.dtype == problem.codes->dtype() && !problem.accumulate)),
          "invalid_argument", "gemm: A and B differ in dtype, or a product with codes accumulates");
  const bool is_one_part = problem.source == nullptr || problem.source->parts.size() == 1;
  require(!problem.accumulate || problem.c.dtype == DType::kF32 || (k <= kMaxAddedDepth && is_one_part),
          "invalid_argument",
          "gemm: a C of 16 bits accumulates k up to " + std::to_string(kMaxAddedDepth) + ", of one part");
  require(problem.alpha == 1 ||
              (!problem.accumulate && problem.bias == nullptr && problem.epilogue.kind == Epilogue::kNone),
          "invalid_argument", "gemm: only a product alone has a factor");
}

bool has_epilogue(const GemmProblem& problem) { return problem.epilogue.kind != Epilogue::kNone; }

void check_epilogue(const GemmProblem& problem) {
  const Matrix& inner = problem.epilogue.inner;
  const Matrix& c = problem.c;
  require(inner.data != nullptr && inner.data != c.data && inner.rows == c.rows && inner.cols == c.cols &&
              inner.dtype == c.dtype,
          "invalid_argument", "gemm: an epilogue needs a second matrix of C's shape and dtype");
  require(!problem.accumulate && problem.row_range == nullptr, "invalid_argument",
          "gemm: an epilogue is for all of C, and for sums that are whole");
}

/// Computes the product with its epilogue in one, or does nothing and returns false.
bool multiply_with_epilogue(const Context& ctx, Scratch& scratch, const GemmProblem& problem) {
  const auto& multiply = backend_of(ctx).gemm_with_epilogue;
  return multiply.is_there() && multiply(ctx, scratch, problem);
}

/// The product alone, without its epilogue.
GemmProblem without_epilogue(const GemmProblem& problem) {
  GemmProblem product = problem;
  product.epilogue = {};
  if (problem.epilogue.kind == Epilogue::kGelu) product.c = problem.epilogue.inner;
  return product;
}

}  // namespace

void apply_epilogue(const Context& ctx, const GemmEpilogue& epilogue, const Matrix& c) {
  switch (epilogue.kind) {
    case Epilogue::kNone:
      return;
    case Epilogue::kGelu:
      return gelu(ctx, epilogue.gelu, epilogue.inner, c);
    case Epilogue::kGeluBackward:
      return gelu_backward(ctx, epilogue.gelu, epilogue.inner, c, c);
  }
}

void SourceOperand::add(const QuantizedMatrix& part, DType dtype) {
  parts.push_back({nullptr, dtype, part.rows(), part.cols(), part.cols()});
  quantized.push_back(&part);
}

std::int64_t SourceOperand::k() const {
  std::int64_t k = 0;
  for (const ConstMatrix& part : parts) k += rows == SourceRows::kAlongK ? part.rows : part.cols;
  return k;
}

std::int64_t SourceOperand::n() const {
  if (parts.empty()) return 0;
  return rows == SourceRows::kAlongK ? parts.front().cols : parts.front().rows;
}

void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems) {
  for (const GemmProblem& problem : problems) {
    check(problem);
    if (has_epilogue(problem)) check_epilogue(problem);
  }
  if (std::ranges::none_of(problems, has_epilogue)) return backend_of(ctx).gemm(ctx, scratch, problems);
  std::vector<GemmProblem> products, unfinished;
  for (const GemmProblem& problem : problems) {
    if (has_epilogue(problem)) {
      if (multiply_with_epilogue(ctx, scratch, problem)) continue;
      unfinished.push_back(problem);
    }
    products.push_back(without_epilogue(problem));
  }
  if (!products.empty()) backend_of(ctx).gemm(ctx, scratch, products);
  for (const GemmProblem& problem : unfinished) apply_epilogue(ctx, problem.epilogue, problem.c);
}

}  // namespace zerofleet
