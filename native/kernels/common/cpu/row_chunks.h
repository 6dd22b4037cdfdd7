#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/context.h"
#include "kernels/common/matrix.h"
#include "kernels/common/simd/rows.h"

namespace zerofleet::cpu {

/// Rows per task of operations that treat rows alike.
constexpr std::int64_t kRowChunk = 64;

inline std::int64_t num_row_chunks(std::int64_t rows) { return (rows + kRowChunk - 1) / kRowChunk; }

/// Calls body(first_row, num_rows) for each chunk of rows, in parallel.
template <class Body>
void for_row_chunks(const Context& ctx, std::int64_t rows, const Body& body) {
  ctx.pool->parallel_for(num_row_chunks(rows), [&](std::int64_t chunk, int) {
    body(chunk * kRowChunk, std::min(kRowChunk, rows - chunk * kRowChunk));
  });
}

/// The rows of a kernel's operand from an element on; null where the operand is absent.
inline ConstRows rows_from(const ConstMatrix& matrix, std::int64_t row, std::int64_t col = 0) {
  if (matrix.data == nullptr) return {};
  return {matrix.at(row, col), matrix.stride};
}
inline Rows rows_from(const Matrix& matrix, std::int64_t row, std::int64_t col = 0) {
  if (matrix.data == nullptr) return {};
  return {matrix.at(row, col), matrix.stride};
}

}  // namespace zerofleet::cpu
