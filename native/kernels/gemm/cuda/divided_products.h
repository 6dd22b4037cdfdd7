#pragma once

#include <vector>

#include "kernels/gemm/cuda/matmuls.h"
#include "kernels/gemm/cuda/operands.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

/// The products of the library that make up a problem, in this order: one for each part of B, the later of which add to C, and divided where
/// an operand's rows are not whole units of 16 bytes.
///
/// cuBLASLt has kernels for Hopper only for matrices whose contiguous dimensions are multiples of 8 elements; strides do not
/// matter. Measured on an H100 with cuBLASLt 13.1: (4096, 768) by (768, 50257) in 3.1 ms, by (768, 50256) in 0.6 ms, by (768, 17) in 0.02 ms.
class DividedProducts {
 public:
  DividedProducts(const GemmProblem& problem, const RightOperand& right);

  /// Returns true if several products add up one element of C: over parts of B, or over a divided k.
  bool are_in_parts() const { return parts_of_k_.size() > 1; }
  /// c: C itself, or other sums of its shape that C is rounded from, which get no bias.
  std::vector<Matmul> into(const Matrix& c) const;

 private:
  struct Range {
    std::int64_t begin, count;
  };
  struct PartOfK {
    Range k;            // of A
    ConstMatrix right;  // of B
  };

  static std::vector<Range> divided(std::int64_t length, bool is_contiguous);
  Matmul product(const Matrix& c, const Range& rows, const Range& cols, const PartOfK& part) const;

  const GemmProblem& problem_;
  SourceRows right_rows_;
  std::vector<Range> rows_, cols_;
  std::vector<PartOfK> parts_of_k_;
};

/// The product with all of B, which is one part.
Matmul whole_product(const GemmProblem& problem, const RightOperand& right);

}  // namespace zerofleet::cuda
