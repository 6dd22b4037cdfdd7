#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/gemm/packed_matrix.h"
#include "kernels/quantize/quantized_matrix.h"

namespace zerofleet {

/// A quantized (k, n) operand for the products of CPUs with few rows, in the order in which they restore it. A product
/// reads the codes and scales alone, which have half the bytes of bf16 in int8 and a quarter in nf4.
///
/// Panels of 32 columns, each of blocks of 64 k. A block has its scales in fp32, then its codes (simd/codes.h).
class PackedCodes {
 public:
  PackedCodes() = default;
  /// For a matrix of (k, n) for kAlongK, (n, k) for kAlongN. Throws Error{"invalid_argument"} on a CUDA device.
  PackedCodes(const Context& ctx, QuantFormat format, SourceRows rows, DType dtype, std::int64_t k, std::int64_t n);

  /// Packs a matrix. A product with it has the bits of one with the result of dequantize() in `dtype`. Throws
  /// Error{"invalid_argument"} for another format or shape.
  void pack(const Context& ctx, const QuantizedMatrix& source);

  QuantFormat format() const { return format_; }
  SourceRows rows() const { return rows_; }
  DType dtype() const { return dtype_; }
  std::int64_t k() const { return k_; }
  std::int64_t n() const { return n_; }
  /// True if the words of the product are pairs of bf16, otherwise they are fp32.
  bool pairs() const { return pairs_; }
  /// False if no element can be NaN or subnormal.
  bool specials() const { return specials_; }
  /// ⌈n / 32⌉ · ⌈k / 64⌉ · (2048 in int8, 1024 in nf4, and 128 of scales, or 256 for kAlongK).
  std::size_t num_bytes() const { return buffer_.num_bytes(); }
  /// The block at a panel and a number of blocks of k.
  const std::uint8_t* block(std::int64_t panel, std::int64_t index) const;

 private:
  std::int64_t num_panels() const;
  std::int64_t block_bytes() const;

  QuantFormat format_ = QuantFormat::kInt8;
  SourceRows rows_ = SourceRows::kAlongN;
  DType dtype_ = DType::kF32;
  std::int64_t k_ = 0, n_ = 0;
  bool pairs_ = false, specials_ = false;
  Buffer buffer_;
};

}  // namespace zerofleet
