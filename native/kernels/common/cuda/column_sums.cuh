#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"

// Sums over the rows of a matrix, such as the gradients of weights that multiply or are added to each row: chunks of 64
// rows, each in rising order, then chunks of 256 of those sums in order, and so on until one is left.
namespace zerofleet::cuda {

inline constexpr std::int64_t kRowChunk = 64;
inline constexpr std::int64_t kFoldChunk = 256;
inline constexpr int kColumnWidth = 4;  // columns of a thread
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

/// Each thread handles kColumnWidth columns of a part.
template <class Term>
__global__ void __launch_bounds__(kColumnThreads)
    sum_parts(const Term term, const SumShape shape, std::int64_t chunk, const SumArrays<Term::kSums> sums) {
  const std::int64_t part = blockIdx.x, repeat = part % shape.repeats, begin = part / shape.repeats * chunk;
  const std::int64_t end = begin + chunk < shape.rows ? begin + chunk : shape.rows;
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

/// Rows of sums that are to be added up.
template <int kSumCount>
struct SumsOfParts {
  static constexpr int kSums = kSumCount;
  SumArrays<kSums> parts;
  std::int64_t cols;

  __device__ void add(std::int64_t row, std::int64_t, const SumColumns& at, SumLanes (&total)[kSums]) const {
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const SumLanes x = load(static_cast<const float*>(parts.array[i]) + row * cols, at);
      total[i] = lanes<kColumnWidth>([&](int k) { return total[i].v[k] + x.v[k]; });
    }
  }
};

template <class Term>
void sum_columns(const Context& ctx, const char* name, const Term& term, const SumShape& shape, std::int64_t chunk,
                 const SumArrays<Term::kSums>& sums) {
  const std::int64_t chunks = std::max<std::int64_t>(1, (shape.rows + chunk - 1) / chunk),
                     parts = chunks * shape.repeats;
  const unsigned across = num_blocks_across(shape.cols, kColumnThreads * kColumnWidth);
  const Spread spread{dim3(num_blocks_for(parts, 1), across), kColumnThreads};
  if (parts == 1) return launch(name, stream_of(ctx), spread, sum_parts<Term>, term, shape, chunk, sums);
  Temporary<float> memory(ctx, static_cast<std::size_t>(Term::kSums * parts * shape.cols));
  SumsOfParts<Term::kSums> of_parts{{}, shape.cols};
  for (int i = 0; i < Term::kSums; ++i) of_parts.parts.array[i] = memory.data() + i * parts * shape.cols;
  launch(name, stream_of(ctx), spread, sum_parts<Term>, term, shape, chunk, of_parts.parts);
  sum_columns(ctx, name, of_parts, {parts, shape.cols, shape.cols % kColumnWidth == 0}, kFoldChunk, sums);
}

/// sums[i][column] = Σ over rows and repeats of the terms that term.add(row, repeat, columns, total) adds to total[i]:
/// an object of the device with a constant kSums. sums: (cols) each. Reads each row once.
template <class Term>
void column_sums(const Context& ctx, const char* name, const Term& term, const SumShape& shape,
                 const std::array<float*, Term::kSums>& sums) {
  if (shape.cols == 0) return;
  SumArrays<Term::kSums> arrays;
  std::ranges::copy(sums, arrays.array);
  sum_columns(ctx, name, term, shape, kRowChunk, arrays);
}

}  // namespace zerofleet::cuda
