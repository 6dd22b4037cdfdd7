#include "kernels/quantize/quantized_matrix.h"

#include <string>
#include <utility>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check_shapes(const char* operation, const QuantizedMatrix& quantized, const ConstMatrix& matrix) {
  require(matrix.data != nullptr && quantized.rows() == matrix.rows && quantized.cols() == matrix.cols,
          "invalid_argument",
          std::string(operation) + ": a quantized (" + std::to_string(quantized.rows()) + ", " +
              std::to_string(quantized.cols()) + ") matrix and one of (" + std::to_string(matrix.rows) + ", " +
              std::to_string(matrix.cols) + ")");
}

/// The arrays of a matrix from its first byte on: codes, groups, codes of scales.
template <class Blocks, class Byte>
Blocks arrays_at(QuantFormat format, std::int64_t rows, std::int64_t cols, Byte* codes, std::size_t code_bytes) {
  const std::int64_t groups = (rows * quant_blocks_of_row(cols) + kQuantGroup - 1) / kQuantGroup;
  Blocks blocks{format, rows, cols, nullptr, nullptr, nullptr};
  blocks.codes = reinterpret_cast<decltype(blocks.codes)>(codes);
  blocks.groups = reinterpret_cast<decltype(blocks.groups)>(codes + code_bytes);
  blocks.scale_codes = reinterpret_cast<decltype(blocks.scale_codes)>(blocks.groups + groups);
  return blocks;
}

}  // namespace

QuantizedMatrix::QuantizedMatrix(Device device, QuantFormat format, std::int64_t rows, std::int64_t cols)
    : QuantizedMatrix(Buffer(device, quantized_bytes(format, rows, cols)), format, rows, cols) {}

QuantizedMatrix::QuantizedMatrix(Buffer memory, QuantFormat format, std::int64_t rows, std::int64_t cols)
    : format_(format), rows_(rows), cols_(cols), buffer_(std::move(memory)) {
  require(rows >= 1 && cols >= 1 && buffer_.num_bytes() == quantized_bytes(format, rows, cols), "invalid_argument",
          "a quantized matrix needs at least one row and one column, and memory of its size");
}

// A multiple of 32, so groups behind the codes are aligned.
std::size_t QuantizedMatrix::code_bytes() const {
  return static_cast<std::size_t>(rows_ * quant_blocks_of_row(cols_) * code_bytes_of_block(format_));
}

ConstQuantBlocks QuantizedMatrix::blocks() const {
  return arrays_at<ConstQuantBlocks>(format_, rows_, cols_, buffer_.data(), code_bytes());
}

QuantBlocks QuantizedMatrix::blocks() {
  return arrays_at<QuantBlocks>(format_, rows_, cols_, buffer_.data(), code_bytes());
}

void quantize(const Context& ctx, const ConstMatrix& source, QuantizedMatrix& target) {
  check_shapes("quantize", target, source);
  backend_of(ctx).quantize(ctx, source, target.blocks());
}

void dequantize(const Context& ctx, const QuantizedMatrix& source, const Matrix& target) {
  check_shapes("dequantize", source, target);
  backend_of(ctx).dequantize(ctx, source.blocks(), target);
}

}  // namespace zerofleet
