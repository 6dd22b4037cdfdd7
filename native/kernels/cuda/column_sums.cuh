#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "kernels/cuda/launch_grid.cuh"

// Sums over the rows of a matrix, such as the gradients of weights that multiply or are added to each row: chunks of 64
// rows, each in rising order, that are then added in order.
namespace zerofleet::cuda {

inline constexpr std::int64_t kRowChunk = 64;
inline constexpr unsigned kColumnThreads = 128;

/// One thread per column and chunk: partial[chunk][column] = Σ over the chunk's rows of term(row, column).
template <class Term>
__global__ void __launch_bounds__(kColumnThreads)
    partial_column_sums(const Term term, std::int64_t rows, std::int64_t cols, float* partial) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x;
  if (column >= cols) return;
  const std::int64_t begin = static_cast<std::int64_t>(blockIdx.y) * kRowChunk;
  const std::int64_t end = begin + kRowChunk < rows ? begin + kRowChunk : rows;
  float sum = 0;
  for (std::int64_t row = begin; row < end; ++row) sum = sum + term(row, column);
  partial[static_cast<std::int64_t>(blockIdx.y) * cols + column] = sum;
}

template <class Unused = void>
__global__ void __launch_bounds__(kColumnThreads)
    fold_column_sums(const float* partial, std::int64_t chunks, std::int64_t cols, float* sums) {
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.x) * kColumnThreads + threadIdx.x;
  if (column >= cols) return;
  float sum = 0;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) sum = sum + partial[chunk * cols + column];
  sums[column] = sum;
}

/// sums[column] = Σ over rows of term(row, column), a function object of the device. sums: (cols).
template <class Term>
void column_sums(const Context& ctx, const char* name, const Term& term, std::int64_t rows, std::span<float> sums) {
  const Stream& stream = stream_of(ctx);
  const auto cols = static_cast<std::int64_t>(sums.size());
  const std::int64_t chunks = std::max<std::int64_t>(1, (rows + kRowChunk - 1) / kRowChunk);
  require(chunks <= 65535, "invalid_argument", "sums over more than 4 million rows in one kernel");
  Temporary<float> partial(ctx, static_cast<std::size_t>(chunks * cols));
  const unsigned blocks = num_blocks_for(cols, kColumnThreads);
  launch(name, stream, {dim3(blocks, static_cast<unsigned>(chunks)), kColumnThreads}, partial_column_sums<Term>, term, rows,
         cols, partial.data());
  launch(name, stream, {blocks, kColumnThreads}, fold_column_sums<>, partial.data(), chunks, cols, sums.data());
}

}  // namespace zerofleet::cuda
