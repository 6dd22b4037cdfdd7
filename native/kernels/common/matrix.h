#pragma once

#include <cstddef>
#include <cstdint>

#include "core/dtype.h"

namespace zerofleet {

/// A non-owning view of a row-major matrix. `stride` counts elements from one row to the next.
struct ConstMatrix {
  const void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  /// The address of row `row`, column `col`.
  const void* at(std::int64_t row, std::int64_t col) const {
    return static_cast<const std::byte*>(data) + (row * stride + col) * static_cast<std::int64_t>(size_of(dtype));
  }
};

struct Matrix {
  void* data = nullptr;
  DType dtype = DType::kF32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;

  void* at(std::int64_t row, std::int64_t col) const {
    return static_cast<std::byte*>(data) + (row * stride + col) * static_cast<std::int64_t>(size_of(dtype));
  }
  operator ConstMatrix() const { return {data, dtype, rows, cols, stride}; }  // NOLINT: a view of the same elements

  /// The columns [begin, begin + count) of all rows.
  Matrix columns(std::int64_t begin, std::int64_t count) const { return {at(0, begin), dtype, rows, count, stride}; }
  Matrix first_rows(std::int64_t count) const { return {data, dtype, count, cols, stride}; }
  /// The rows [begin, begin + count).
  Matrix row_slice(std::int64_t begin, std::int64_t count) const { return {at(begin, 0), dtype, count, cols, stride}; }
};

/// Returns true when rows, columns and dtype of both agree.
inline bool same_shape(const ConstMatrix& a, const ConstMatrix& b) {
  return a.rows == b.rows && a.cols == b.cols && a.dtype == b.dtype;
}

}  // namespace zerofleet
