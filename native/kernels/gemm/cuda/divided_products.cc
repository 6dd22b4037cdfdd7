#include "kernels/gemm/cuda/divided_products.h"

#include "core/dtype.h"

namespace zerofleet::cuda {
namespace {

constexpr std::int64_t kUnit = 8;
/// Below this the slow kernels take less time than another launch.
constexpr std::int64_t kMinDivided = 1024;

/// Columns or rows of a matrix that is read as it lies or transposed, by the dimension that they are of.
ConstMatrix part_of(const ConstMatrix& matrix, bool of_columns, std::int64_t begin, std::int64_t count) {
  if (of_columns) return {matrix.at(0, begin), matrix.dtype, matrix.rows, count, matrix.stride};
  return {matrix.at(begin, 0), matrix.dtype, count, matrix.cols, matrix.stride};
}

}  // namespace

std::vector<DividedProducts::Range> DividedProducts::divided(std::int64_t length, bool is_contiguous) {
  const std::int64_t rest = length % kUnit;
  if (!is_contiguous || rest == 0 || length < kMinDivided) return {{0, length}};
  return {{0, length - rest}, {length - rest, rest}};
}

DividedProducts::DividedProducts(const GemmProblem& problem, const RightOperand& right)
    : problem_(problem),
      right_rows_(right.rows),
      rows_(divided(problem.c.rows, problem.a_transposed)),
      cols_(divided(problem.c.cols, true)) {
  // A C of 16 bits that is added to would be rounded twice by two products. Of a transposed A, k is not contiguous.
  const bool adds_to_rounded = problem.accumulate && problem.c.dtype != DType::kF32;
  std::int64_t k = 0;
  for (std::size_t part = 0; part < right.parts.size(); ++part) {
    const bool is_divided = !problem.a_transposed && !adds_to_rounded;
    for (const Range& range : divided(right.k_of(part), is_divided)) {
      const ConstMatrix piece = part_of(right.parts[part], right.rows == SourceRows::kAlongN, range.begin, range.count);
      parts_of_k_.push_back({{k + range.begin, range.count}, piece});
    }
    k += right.k_of(part);
  }
}

std::vector<Matmul> DividedProducts::into(const Matrix& c) const {
  std::vector<Matmul> products;
  for (const Range& rows : rows_) {
    for (const Range& cols : cols_) {
      for (const PartOfK& part : parts_of_k_) {
        Matmul matmul = product(c, rows, cols, part);
        const bool is_first = part.k.begin == 0, is_last = &part == &parts_of_k_.back();
        matmul.accumulate = problem_.accumulate || !is_first;
        if (problem_.bias != nullptr && is_last && c.data == problem_.c.data)
          matmul.bias =
              static_cast<const std::byte*>(problem_.bias) + static_cast<std::size_t>(cols.begin) * size_of(c.dtype);
        products.push_back(matmul);
      }
    }
  }
  return products;
}

Matmul DividedProducts::product(const Matrix& c, const Range& rows, const Range& cols, const PartOfK& part) const {
  Matmul matmul;
  matmul.a = problem_.a_transposed ? part_of(problem_.a, true, rows.begin, rows.count)
                                   : part_of(problem_.a, true, part.k.begin, part.k.count);
  matmul.a_transposed = problem_.a_transposed;
  matmul.b = part_of(part.right, right_rows_ == SourceRows::kAlongK, cols.begin, cols.count);
  matmul.b_transposed = right_rows_ == SourceRows::kAlongN;
  matmul.c = {c.at(rows.begin, cols.begin), c.dtype, rows.count, cols.count, c.stride};
  matmul.alpha = problem_.alpha;
  return matmul;
}

Matmul whole_product(const GemmProblem& problem, const RightOperand& right) {
  Matmul matmul;
  matmul.a = problem.a;
  matmul.a_transposed = problem.a_transposed;
  matmul.b = right.parts.front();
  matmul.b_transposed = right.rows == SourceRows::kAlongN;
  matmul.c = problem.c;
  matmul.bias = problem.bias;
  matmul.alpha = problem.alpha;
  matmul.epilogue = problem.epilogue;
  return matmul;
}

}  // namespace zerofleet::cuda
