#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/matrix.h"
#include "kernels/common/scratch.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/gemm/packed_codes.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/quantize/quantized_matrix.h"

namespace zerofleet {

/// A right operand B (k, n) that is not packed in advance. The product packs some columns at a time into a core's
/// cache, uses them for all rows of C, and drops them. This saves the memory of a packed copy, and pays off when C has
/// hundreds of rows.
struct SourceOperand {
  /// Parts of B with consecutive k. Each part except the last has an even number of k.
  std::vector<ConstMatrix> parts;  // (k of the part, n) for kAlongK, (n, k of the part) for kAlongN
  SourceRows rows = SourceRows::kAlongK;
  /// For each part the quantized matrix that it is dequantized from, or empty. Such parts have no data. The product has
  /// the bits of one with the result of dequantize() in their dtype.
  std::vector<const QuantizedMatrix*> quantized = {};

  /// Appends a part that products of `dtype` dequantize. The matrix must outlive the operand.
  void add(const QuantizedMatrix& part, DType dtype);

  std::int64_t k() const;
  std::int64_t n() const;
};

/// Operation on v = A · B + bias before it becomes C. A product that fuses the operation applies GELU to the unrounded
/// v. Any other product stores v first, and applies GELU to the rounded value. Shapes, types and the implementation of
/// the product alone decide which.
struct GemmEpilogue {
  enum class Kind : std::uint8_t {
    kNone,          // C = v
    kGelu,          // inner = v, C = gelu(v)
    kGeluBackward,  // C = v · gelu'(inner)
  };
  Kind kind = Kind::kNone;
  GeluKind gelu = GeluKind::kTanh;
  Matrix inner = {};  // (m, n) of C's dtype; must not overlap C
};

/// Largest k of a product that accumulates into a 16-bit C.
inline constexpr std::int64_t kMaxAddedDepth = 1024;

/// C (m, n) = alpha · A · B + bias, plus the old contents of C with `accumulate`.
struct GemmProblem {
  ConstMatrix a;          // (m, k), or (k, m) with a_transposed; dtype of b
  const PackedMatrix* b;  // (k, n); null: `source` or `codes` is B
  Matrix c;               // (m, n)
  bool a_transposed = false;
  bool accumulate = false;     // a 16-bit C requires k ≤ kMaxAddedDepth, and B in one part
  const void* bias = nullptr;  // (n) of c's dtype, added to each row in fp32 after the sum over k; null: none
  const SourceOperand* source = nullptr;  // not with a_transposed
  bool varies = false;  // rows or k differ from call to call, so preparing for a shape does not pay off

  /// CUDA devices only: begin and end, in device memory, of the rows of A and C that are computed. With a_transposed
  /// they are rows of A and B. All other rows are ignored. Null: all rows. Different ranges within one call must not
  /// overlap.
  const std::int32_t* row_range = nullptr;
  GemmEpilogue epilogue = {};          // not with `accumulate` or a row_range
  float alpha = 1;                     // must be 1 with a bias, `accumulate` or an epilogue
  const PackedCodes* codes = nullptr;  // CPUs only; not with a_transposed or `accumulate`

  std::int64_t b_k() const { return b ? b->k() : source ? source->k() : codes->k(); }
  std::int64_t b_n() const { return b ? b->n() : source ? source->n() : codes->n(); }
};

/// Applies an epilogue separately from its product, to v in C, or for kGelu in `inner`.
void apply_epilogue(const Context& ctx, const GemmEpilogue& epilogue, const Matrix& c);

/// Computes all problems in one parallel section. They must be independent of each other.
///
/// On a CPU each element of C is one chain of fp32 additions in ascending k, so a result does not depend on threads or
/// tiles. On a CUDA device the order of additions depends on shapes and the kind of device alone. Throws
/// Error{"invalid_argument"} if shapes or types do not match.
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);

}  // namespace zerofleet
