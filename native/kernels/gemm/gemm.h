#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/matrix.h"
#include "kernels/common/scratch.h"
#include "kernels/elementwise/gelu.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/quantize/quantized_matrix.h"

namespace zerofleet {

/// A right operand B (k, n) that stays as it lies in memory: the product packs some columns at a time into a core's own
/// cache, uses them for all rows of C and forgets them. It saves the packed copy, and pays where C has hundreds of rows.
struct SourceOperand {
  /// Consecutive k, of which each part but the last has an even number.
  std::vector<ConstMatrix> parts;              // (k of the part, n) for kAlongK, (n, k of the part) for kAlongN
  SourceRows rows = SourceRows::kAlongK;
  /// For each part the matrix that it is unpacked from on the way, or empty. Such parts have no data, and the product has the bits of one
  /// with what dequantize() restores in their dtype.
  std::vector<const QuantizedMatrix*> quantized = {};

  /// Appends a part that is unpacked in products of `dtype`. The matrix must outlive the operand.
  void add(const QuantizedMatrix& part, DType dtype);

  std::int64_t k() const;
  std::int64_t n() const;
};

/// Operation applied to v = A · B + bias before it becomes C. A product that fuses it applies GELU to v as it was
/// summed up; elsewhere v is stored first, and GELU is applied to the rounded value. The choice depends only on shapes,
/// types and the product implementation.
struct GemmEpilogue {
  enum class Kind : std::uint8_t {
    kNone,          // C = v
    kGelu,          // inner = v, C = gelu(v)
    kGeluBackward,  // C = v · gelu'(inner)
  };
  Kind kind = Kind::kNone;
  GeluKind gelu = GeluKind::kTanh;
  Matrix inner = {};  // (m, n) of C's dtype, apart from C
};

/// The largest k of a product that is added to a C of 16 bits.
inline constexpr std::int64_t kMaxAddedDepth = 1024;

/// C (m, n) = alpha · A · B + bias, plus C's old contents with `accumulate`.
struct GemmProblem {
  ConstMatrix a;          // (m, k), or with a_transposed its transpose (k, m); dtype of b
  const PackedMatrix* b;  // (k, n), or null: `source` is B
  Matrix c;               // (m, n)
  bool a_transposed = false;
  bool accumulate = false;     // where C is not fp32: of k up to kMaxAddedDepth, and B in one part
  const void* bias = nullptr;  // (n) of c's dtype, or null: added to each row in fp32, after the sum over k
  const SourceOperand* source = nullptr;  // not with a_transposed
  bool varies = false;  // its rows or k differ from call to call: nothing is worth to be prepared for the shape
  /// CUDA devices only: two numbers in the device's memory, the first and the end of those rows of A and C, or with
  /// a_transposed of A and B, that take part; the others are as if they were not there. Null: all. Ranges of one call that
  /// lie in different places must not have rows in common.
  const std::int32_t* row_range = nullptr;
  GemmEpilogue epilogue = {};  // not with `accumulate` or a row_range
  float alpha = 1;             // another one only without bias, `accumulate` and epilogue
};

/// Applies the epilogue to v in C, or for kGelu in `inner`, apart from the product.
void apply_epilogue(const Context& ctx, const GemmEpilogue& epilogue, const Matrix& c);

/// Computes all problems, which must be independent of each other, as one parallel section. Products are summed in fp32
/// in rising k, one chain per element of C, so a result depends on neither threads nor tiles; on CUDA devices in an order
/// that depends on shapes and the kind of device alone.
/// Throws Error{"invalid_argument"} where shapes or types do not fit.
void gemm(const Context& ctx, Scratch& scratch, std::span<const GemmProblem> problems);

}  // namespace zerofleet
