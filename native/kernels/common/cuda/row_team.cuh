#pragma once

#include <cstdint>

#include "kernels/common/cuda/block_sum.cuh"
#include "kernels/common/cuda/row_vector.cuh"

// Threads that work on one row together, because they need a sum over it: a warp for a short row, else a block. Blocks
// have kRowThreads threads in either case.
namespace zerofleet::cuda {

inline constexpr std::int64_t kWarpColumns = 1024;  // of a row that one warp works on: four accesses of each lane

template <int kThreads>
struct RowTeam {
  static constexpr std::int64_t kRowsPerBlock = kRowThreads / kThreads;

  /// Beyond the last row a whole team has nothing to do, and leaves.
  __device__ static std::int64_t row() {
    return static_cast<std::int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.x / kThreads;
  }
  __device__ static bool is_first() { return threadIdx.x % kThreads == 0; }

  /// Sum over the team in a fixed order; every thread has it. All threads of the team come here.
  __device__ static float sum(float value) {
    if constexpr (kThreads == 32) {
      return warp_sum(value);
    } else {
      __shared__ float parts[kRowThreads / 32];
      return block_sum(value, parts);
    }
  }

  /// Calls body(columns) for this thread's part of a row.
  template <int N, class Body>
  __device__ static void sweep(std::int64_t cols, bool aligned, const Body& body) {
    std::int64_t first = static_cast<std::int64_t>(threadIdx.x % kThreads) * N;
    if (aligned) {
#pragma unroll 2
      for (; first + N <= cols; first += kThreads * N) body(Columns<N>{first, N, true});
    }
    for (; first < cols; first += kThreads * N) body(columns_from<N>(first, cols, false));
  }
};

/// Calls body(RowTeam{}) with the team for rows of `cols` columns.
template <class Body>
void with_row_team(std::int64_t cols, const Body& body) {
  if (cols <= kWarpColumns) return body(RowTeam<32>{});
  body(RowTeam<kRowThreads>{});
}

}  // namespace zerofleet::cuda
