#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"

// Sums over the rows of a matrix, such as the gradients of weights that multiply or are added to each row. Chunks of 64
// rows are added up first, each in rising order. Chunks of 512 of those parts follow, and so on until one part is left.
// Of a chunk of parts, 16 warps add up every 16th, and then their sums are added in order.
namespace zerofleet::cuda {

inline constexpr std::int64_t kRowChunk = 64;
inline constexpr std::int64_t kFoldChunk = 512;
inline constexpr int kFoldGroups = 16;
inline constexpr int kFoldThreads = 512;  // a warp for each group
inline constexpr int kColumnWidth = 4;    // columns of a thread
inline constexpr int kColumnThreads = 64;

using SumColumns = Columns<kColumnWidth>;
using SumLanes = Lanes<kColumnWidth>;

/// Shape of the summed data: `repeats` matrices of (rows, cols) side by side. A part is a chunk of rows of one matrix;
/// the parts of one chunk lie next to each other.
struct SumShape {
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool aligned = false;  // for kColumnWidth, also where a repeat begins
  std::int64_t repeats = 1;
};

/// (parts, cols) each
template <int kSums>
struct SumArrays {
  float* array[kSums];
};

/// Arrays of `numel` one after the other.
template <int kSums>
SumArrays<kSums> arrays_in(float* memory, std::int64_t numel) {
  SumArrays<kSums> arrays;
  for (int i = 0; i < kSums; ++i) arrays.array[i] = memory + i * numel;
  return arrays;
}

/// Each thread handles kColumnWidth columns of a part.
template <class Term>
__global__ void __launch_bounds__(kColumnThreads)
    sum_parts(const Term term, const SumShape shape, const SumArrays<Term::kSums> sums) {
  const std::int64_t part = blockIdx.x, repeat = part % shape.repeats, begin = part / shape.repeats * kRowChunk;
  const std::int64_t end = begin + kRowChunk < shape.rows ? begin + kRowChunk : shape.rows;
  const std::int64_t first = (static_cast<std::int64_t>(blockIdx.y) * kColumnThreads + threadIdx.x) * kColumnWidth;
  if (first >= shape.cols) return;
  const SumColumns at = columns_from<kColumnWidth>(first, shape.cols, shape.aligned);
  const std::int64_t source = repeat * shape.cols + first;
  SumLanes total[Term::kSums] = {};
  const auto add_rows = [&](const SumColumns& columns) {
#pragma unroll 8
    for (std::int64_t row = begin; row < end; ++row) term.add(row, repeat, columns, total);
  };
  // A constant, so that the loads of several rows are in progress at once.
  if (at.whole) {
    add_rows({source, kColumnWidth, true});
  } else {
    add_rows({source, at.count, false});
  }
#pragma unroll
  for (int i = 0; i < Term::kSums; ++i) {
    store(sums.array[i] + part * shape.cols, SumColumns{first, at.count, false}, total[i]);
  }
}

/// A chunk of parts (blockIdx.y) of one sum (blockIdx.z): a warp for every kFoldGroups-th part, lanes for columns; then
/// the warps' sums in order.
template <int kSums>
__global__ void __launch_bounds__(kFoldThreads)
    fold_parts(const SumArrays<kSums> parts, std::int64_t num_parts, std::int64_t cols, const SumArrays<kSums> sums) {
  __shared__ float of_groups[kFoldGroups][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t col = static_cast<std::int64_t>(blockIdx.x) * 32 + lane, chunk = blockIdx.y;
  const std::int64_t begin = chunk * kFoldChunk, end = begin + kFoldChunk < num_parts ? begin + kFoldChunk : num_parts;
  const float* from = parts.array[blockIdx.z];
  float total = 0;
  if (col < cols) {
#pragma unroll 8
    for (std::int64_t part = begin + group; part < end; part += kFoldGroups) total = total + from[part * cols + col];
  }
  of_groups[group][lane] = total;
  __syncthreads();
  if (group != 0 || col >= cols) return;
#pragma unroll
  for (int other = 1; other < kFoldGroups; ++other) total = total + of_groups[other][lane];
  sums.array[blockIdx.z][chunk * cols + col] = total;
}

/// sums[i][column] = Σ of the parts of sum i, (num_parts, cols) each.
template <int kSums>
void fold_columns(const Context& ctx, const char* name, const SumArrays<kSums>& parts, std::int64_t num_parts,
                  std::int64_t cols, const SumArrays<kSums>& sums) {
  const std::int64_t chunks = (num_parts + kFoldChunk - 1) / kFoldChunk;
  const Spread spread{dim3(num_blocks_for(cols, 32), num_blocks_across(chunks, 1), kSums), kFoldThreads};
  if (chunks == 1) return launch(name, stream_of(ctx), spread, fold_parts<kSums>, parts, num_parts, cols, sums);
  Temporary<float> memory(ctx, static_cast<std::size_t>(kSums * chunks * cols));
  const SumArrays<kSums> of_chunks = arrays_in<kSums>(memory.data(), chunks * cols);
  launch(name, stream_of(ctx), spread, fold_parts<kSums>, parts, num_parts, cols, of_chunks);
  fold_columns(ctx, name, of_chunks, chunks, cols, sums);
}

/// sums[i][column] = Σ over rows and repeats of the terms that term.add(row, repeat, columns, total) adds to total[i]:
/// an object of the device with a constant kSums. sums: (cols) each. Reads each row once.
template <class Term>
void column_sums(const Context& ctx, const char* name, const Term& term, const SumShape& shape,
                 const std::array<float*, Term::kSums>& sums) {
  constexpr int kSums = Term::kSums;
  if (shape.cols == 0) return;
  SumArrays<kSums> arrays;
  std::ranges::copy(sums, arrays.array);
  const std::int64_t chunks = std::max<std::int64_t>(1, (shape.rows + kRowChunk - 1) / kRowChunk),
                     num_parts = chunks * shape.repeats;
  const unsigned across = num_blocks_across(shape.cols, kColumnThreads * kColumnWidth);
  const Spread spread{dim3(num_blocks_for(num_parts, 1), across), kColumnThreads};
  if (num_parts == 1) return launch(name, stream_of(ctx), spread, sum_parts<Term>, term, shape, arrays);
  Temporary<float> memory(ctx, static_cast<std::size_t>(kSums * num_parts * shape.cols));
  const SumArrays<kSums> parts = arrays_in<kSums>(memory.data(), num_parts * shape.cols);
  launch(name, stream_of(ctx), spread, sum_parts<Term>, term, shape, parts);
  fold_columns(ctx, name, parts, num_parts, shape.cols, arrays);
}

}  // namespace zerofleet::cuda
