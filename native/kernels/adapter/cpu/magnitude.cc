#include "kernels/adapter/magnitude.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/device/context.h"
#include "core/error.h"
#include "kernels/adapter/simd/magnitude.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/common/simd/add_rows.h"
#include "kernels/flat/cast.h"

namespace zerofleet::cpu {
namespace {

using Floats = std::vector<float>;

/// A matrix without gaps, times `factor`, in fp32.
Floats floats_of(const Context& ctx, const ConstMatrix& matrix, float factor) {
  const auto numel = static_cast<std::size_t>(matrix.rows * matrix.cols);
  Floats values(numel);
  if (numel > 0)
    cast_to_f32(ctx, {static_cast<const std::byte*>(matrix.data), numel * size_of(matrix.dtype)}, matrix.dtype, values);
  for (float& value : values) value *= factor;
  return values;
}

/// (cols, rows) from (rows, cols).
Floats transposed(const Floats& values, std::int64_t rows, std::int64_t cols) {
  Floats result(values.size());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < cols; ++j)
      result[static_cast<std::size_t>(j * rows + i)] = values[static_cast<std::size_t>(i * cols + j)];
  return result;
}

/// The arguments for rows from `row` on of V as it lies in memory.
AdaptedSquaresArgs squares_from(const AdaptedMatrix& m, const Floats& left, const Floats& right, std::int64_t row,
                                std::int64_t rows) {
  AdaptedSquaresArgs chunk;
  chunk.weight = rows_from(m.weight, row);
  chunk.left = left.data() + row * m.rank();
  chunk.right = right.data();
  chunk.rows = rows;
  chunk.cols = m.weight.cols;
  chunk.rank = m.rank();
  chunk.dtype = m.weight.dtype;
  return chunk;
}

/// Squares of an (out, in) matrix, summed over its columns.
void squares_of_rows(const Context& ctx, const AdaptedMatrix& m, const Floats& left, const Floats& right,
                     std::span<float> sums) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, adapted_row_squares);
  for_row_chunks(ctx, m.weight.rows, [&](std::int64_t row, std::int64_t rows) {
    AdaptedSquaresArgs chunk = squares_from(m, left, right, row, rows);
    chunk.sums = sums.data() + row;
    kernel(chunk);
  });
}

/// Calls add(first_row, num_rows, sums) for chunks of rows in parallel, and adds their sums (cols) to `sums` in order.
template <class Add>
void sum_over_rows(const Context& ctx, std::int64_t num_rows, std::span<float> sums, const Add& add) {
  const auto cols = std::ssize(sums);
  Floats partial(static_cast<std::size_t>(num_row_chunks(num_rows) * cols));
  for_row_chunks(ctx, num_rows,
                 [&](std::int64_t row, std::int64_t rows) { add(row, rows, partial.data() + row / kRowChunk * cols); });
  const auto add_up = ZF_PICK_KERNEL(ctx.cpu_isa, add_row);
  for (std::int64_t chunk = 0; chunk < num_row_chunks(num_rows); ++chunk)
    add_up(sums.data(), partial.data() + chunk * cols, cols, DType::kF32);
}

/// Squares of an (in, out) matrix, summed over its rows.
void squares_of_columns(const Context& ctx, const AdaptedMatrix& m, const Floats& left, const Floats& right,
                        std::span<float> sums) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, adapted_column_squares);
  std::ranges::fill(sums, 0.0F);
  sum_over_rows(ctx, m.weight.rows, sums, [&](std::int64_t row, std::int64_t rows, float* of_chunk) {
    AdaptedSquaresArgs chunk = squares_from(m, left, right, row, rows);
    chunk.sums = of_chunk;
    kernel(chunk);
  });
}

float rounded_to(float value, DType dtype) {
  if (dtype == DType::kBF16) return to_float(to_bf16(value));
  return dtype == DType::kF16 ? to_float(to_f16(value)) : value;
}

}  // namespace

void direction_norms(const Context& ctx, const DirectionNorms& args) {
  const AdaptedMatrix& m = args.matrix;
  const std::int64_t rank = m.rank();
  Floats up = floats_of(ctx, {m.up.data, m.weight.dtype, m.out(), rank, rank}, m.scale);
  Floats down = floats_of(ctx, {m.down.data, m.weight.dtype, rank, m.in(), m.in()}, 1);
  if (m.in_first) {
    squares_of_columns(ctx, m, transposed(down, rank, m.in()), transposed(up, m.out(), rank), args.norms);
  } else {
    squares_of_rows(ctx, m, up, down, args.norms);
  }
  for (float& norm : args.norms) norm = rounded_to(std::sqrt(norm), m.weight.dtype);
  if (args.magnitude == nullptr) return;
  const Floats magnitudes = floats_of(ctx, {args.magnitude, m.weight.dtype, 1, m.out(), m.out()}, 1);
  for (std::size_t o = 0; o < magnitudes.size(); ++o) {
    const float norm = args.norms[o];
    args.factors[o] = norm == 0 ? 0 : magnitudes[o] / norm;
    args.inverses[o] = norm == 0 ? 0 : 1 / norm;
  }
}

void scale_columns(const Context& ctx, const ColumnScaling& args) {
  require(args.row_range == nullptr, "invalid_argument", "scale_columns: a CPU knows how many rows there are");
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, scale_columns_of_rows);
  for_row_chunks(ctx, args.y.rows, [&](std::int64_t row, std::int64_t rows) {
    ColumnScalingArgs chunk;
    chunk.x = rows_from(args.x, row);
    chunk.factors = args.factors.data();
    chunk.bias = args.bias;
    chunk.y = rows_from(args.y, row);
    chunk.rows = rows;
    chunk.cols = args.y.cols;
    chunk.dtype = args.y.dtype;
    kernel(chunk);
  });
}

void magnitude_gradient(const Context& ctx, const MagnitudeGradient& args) {
  require(args.row_range == nullptr, "invalid_argument", "magnitude_gradient: a CPU knows how many rows there are");
  const auto add = ZF_PICK_KERNEL(ctx.cpu_isa, add_row_product);
  if (args.begins) std::ranges::fill(args.gradient, 0.0F);
  sum_over_rows(ctx, args.dy.rows, args.gradient, [&](std::int64_t row, std::int64_t rows, float* sums) {
    for (std::int64_t i = row; i < row + rows; ++i)
      add(sums, args.dy.at(i, 0), args.z.at(i, 0), args.dy.cols, args.dy.dtype);
  });
  for (std::size_t n = 0; args.ends && n < args.gradient.size(); ++n) args.gradient[n] *= args.inverses[n];
}

}  // namespace zerofleet::cpu
