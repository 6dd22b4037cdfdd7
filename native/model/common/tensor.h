#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// A matrix that owns its memory.
class Tensor {
 public:
  enum class Rows : std::uint8_t { kPadded, kContiguous };

  /// Elements from one padded row to the next.
  static std::int64_t padded_stride(DType dtype, std::int64_t cols) {
    const auto element = static_cast<std::int64_t>(size_of(dtype));
    const std::int64_t line = 64 / element, stride = (cols + line - 1) / line * line;
    return stride * element % 2048 == 0 ? stride + line : stride;
  }

  Tensor() = default;
  /// Padded rows begin at multiples of 64 bytes. So no vector of a CPU lies in two cache lines (a vocabulary may have
  /// 50257 tokens), and all vectors of a GPU are aligned. Padded rows are never a multiple of 2 KiB apart: such rows
  /// would share few cache sets.
  Tensor(const Context& ctx, DType dtype, std::int64_t rows, std::int64_t cols, Rows spacing = Rows::kPadded) {
    const std::int64_t stride = spacing == Rows::kPadded ? padded_stride(dtype, cols) : cols;
    buffer_ = Buffer(ctx.device, static_cast<std::size_t>(rows * stride) * size_of(dtype));
    view_ = {buffer_.data(), dtype, rows, cols, stride};
  }

  const Matrix& view() const { return view_; }
  Matrix first_rows(std::int64_t count) const { return view_.first_rows(count); }
  /// The same memory as a matrix of padded rows of another shape, which must fit.
  Matrix reshaped(std::int64_t rows, std::int64_t cols) const {
    return {view_.data, view_.dtype, rows, cols, padded_stride(view_.dtype, cols)};
  }
  /// The elements of an fp32 tensor; rows must be contiguous.
  std::span<float> floats() { return buffer_.as<float>(); }
  std::span<std::byte> bytes() { return {buffer_.data(), buffer_.num_bytes()}; }
  std::size_t num_bytes() const { return buffer_.num_bytes(); }

 private:
  Buffer buffer_;
  Matrix view_;
};

}  // namespace zerofleet
