#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/common/matrix.h"
#include "kernels/quantize/formulas/blocks.h"

namespace zerofleet {

/// Bytes of a quantized matrix: b · (32 or 64) of codes, b of scales and 8 · ⌈b / 256⌉ of groups with b = rows · ⌈cols
/// / 64⌉ blocks. For rows of whole blocks these are 0.516 bytes an element in nf4, and 1.016 in int8.
constexpr std::size_t quantized_bytes(QuantFormat format, std::int64_t rows, std::int64_t cols) {
  const std::int64_t blocks = rows * quant_blocks_of_row(cols), groups = (blocks + kQuantGroup - 1) / kQuantGroup;
  return static_cast<std::size_t>(blocks * (code_bytes_of_block(format) + 1)) +
         static_cast<std::size_t>(groups) * sizeof(QuantGroup);
}

/// A row-major matrix (rows, cols) in 4 or 8 bits an element, with doubly quantized scales of its blocks
/// (formulas/blocks.h). It is what dequantize() makes of it in any dtype.
class QuantizedMatrix {
 public:
  QuantizedMatrix() = default;
  /// Zeros. Throws Error{"invalid_argument"} for a matrix without elements.
  QuantizedMatrix(Device device, QuantFormat format, std::int64_t rows, std::int64_t cols);

  /// In memory of quantized_bytes(), as it is there.
  QuantizedMatrix(Buffer memory, QuantFormat format, std::int64_t rows, std::int64_t cols);

  QuantFormat format() const { return format_; }
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  std::size_t num_bytes() const { return buffer_.num_bytes(); }
  /// All of it: codes, groups, and the codes of scales.
  std::span<const std::byte> bytes() const { return {buffer_.data(), buffer_.num_bytes()}; }
  std::span<std::byte> bytes() { return {buffer_.data(), buffer_.num_bytes()}; }
  ConstQuantBlocks blocks() const;
  QuantBlocks blocks();

 private:
  std::size_t code_bytes() const;

  QuantFormat format_ = QuantFormat::kNf4;
  std::int64_t rows_ = 0, cols_ = 0;
  Buffer buffer_;
};

/// Quantizes source (rows, cols) of any dtype. Equal bits on every device and instruction-set path. A NaN or an
/// infinity makes NaN of all elements of its group of 256 blocks, so that it is noticed. Throws
/// Error{"invalid_argument"} where shapes differ.
void quantize(const Context& ctx, const ConstMatrix& source, QuantizedMatrix& target);

/// Restores all elements: level · scale in fp32, rounded to nearest even if target has another dtype. The bits are
/// equal on all devices, except those of a NaN. Throws Error{"invalid_argument"} where shapes differ.
void dequantize(const Context& ctx, const QuantizedMatrix& source, const Matrix& target);

}  // namespace zerofleet
