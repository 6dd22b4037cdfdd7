#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/device/transfer.h"
#include "kernels/quantize/quantized_matrix.h"
#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"

namespace zerofleet::test {

inline constexpr QuantFormat kQuantFormats[] = {QuantFormat::kNf4, QuantFormat::kInt8};

inline const char* name_of(QuantFormat format) { return format == QuantFormat::kNf4 ? "nf4" : "int8"; }

inline QuantizedMatrix quantized(const Context& ctx, QuantFormat format, HostMatrix source) {
  QuantizedMatrix target(ctx.device, format, source.rows(), source.cols());
  quantize(ctx, source.view(), target);
  synchronize(ctx);
  return target;
}

/// A copy in the host's memory.
inline QuantizedMatrix fetched(const Context& ctx, const QuantizedMatrix& there) {
  QuantizedMatrix here(Device{}, there.format(), there.rows(), there.cols());
  copy_bytes(ctx, here.bytes(), Device{}, there.bytes(), ctx.device);
  return here;
}

inline std::vector<std::byte> bytes_of(const Context& ctx, const QuantizedMatrix& matrix) {
  const QuantizedMatrix here = fetched(ctx, matrix);
  return {here.bytes().begin(), here.bytes().end()};
}

inline HostMatrix dequantized(const Context& ctx, const QuantizedMatrix& source, DType dtype, std::int64_t gap = 0) {
  HostMatrix target(dtype, source.rows(), source.cols(), gap);
  dequantize(ctx, source, target.view());
  synchronize(ctx);
  return target;
}

/// The code of an element of a matrix in the host's memory.
inline int code_at(const QuantizedMatrix& matrix, std::int64_t row, std::int64_t col) {
  const ConstQuantBlocks blocks = matrix.blocks();
  const std::int64_t block = row * quant_blocks_of_row(matrix.cols()) + col / kQuantBlock, index = col % kQuantBlock;
  const std::uint8_t* codes = blocks.codes + block * code_bytes_of_block(matrix.format());
  if (matrix.format() == QuantFormat::kInt8) return static_cast<std::int8_t>(codes[index]);
  return index < kQuantBlock / 2 ? codes[index] & 15 : codes[index - kQuantBlock / 2] >> 4;
}

}  // namespace zerofleet::test
