#pragma once

#include <vector>

#include "kernels/gemm/cuda/matmuls.h"
#include "kernels/gemm/cuda/operands.h"
#include "kernels/gemm/gemm.h"

namespace zerofleet::cuda {

/// The library products that make up a problem, in order. There is one for each part of B, and the later ones add to C.
/// A product is divided further if an operand's rows are not multiples of 16 bytes.
///
/// cuBLASLt has kernels for Hopper only for matrices whose contiguous dimensions are multiples of 8 elements; strides
/// do not matter. On an H100 with cuBLASLt 13.1, (4096, 768) by (768, 50257) takes 3.1 ms. (768, 50256) takes 0.6 ms,
/// and (768, 17) takes 0.02 ms.
class DividedProducts {
 public:
  DividedProducts(const GemmProblem& problem, const RightOperand& right);

  /// True if several products add up one element of C, over parts of B or over a divided k.
  bool are_in_parts() const { return parts_of_k_.size() > 1; }
  /// Returns the products with output `c`: C itself, or sums of its shape that are rounded to C later and get no bias.
  std::vector<Matmul> into(const Matrix& c) const;

 private:
  struct Range {
    std::int64_t begin, count;
  };
  struct PartOfK {
    Range k;            // in A
    ConstMatrix right;  // of B
  };

  static std::vector<Range> divided(std::int64_t length, bool is_contiguous);
  Matmul product(const Matrix& c, const Range& rows, const Range& cols, const PartOfK& part) const;

  const GemmProblem& problem_;
  SourceRows right_rows_;
  std::vector<Range> rows_, cols_;
  std::vector<PartOfK> parts_of_k_;
};

/// Returns the product with all of B, which must be one part.
Matmul whole_product(const GemmProblem& problem, const RightOperand& right);

}  // namespace zerofleet::cuda
