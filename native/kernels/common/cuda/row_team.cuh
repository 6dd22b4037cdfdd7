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

/// A thread's part of a row in several passes, which read it again: body(0, columns) for each access.
template <class RowsTeam, int N>
struct LoopedRow {
  using Team = RowsTeam;
  static constexpr int kHeld = 0;

  template <class Body>
  __device__ static void sweep(std::int64_t cols, bool aligned, const Body& body) {
    Team::template sweep<N>(cols, aligned, [&](const Columns<N>& at) { body(0, at); });
  }
};

/// The same where each thread has room for its part, kHeld accesses, in registers: body(i, columns) for the i-th. Only
/// for rows that are aligned, of whole accesses. The order of elements is that of LoopedRow.
template <class RowsTeam, int N, int kAccesses>
struct HeldRow {
  using Team = RowsTeam;
  static constexpr int kHeld = kAccesses;
  static constexpr std::int64_t kMaxCols = std::int64_t{kAccesses} * kRowThreads / Team::kRowsPerBlock * N;

  template <class Body>
  __device__ static void sweep(std::int64_t cols, bool, const Body& body) {
    constexpr int kThreads = kRowThreads / static_cast<int>(Team::kRowsPerBlock);
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      const std::int64_t first = static_cast<std::int64_t>(i * kThreads + static_cast<int>(threadIdx.x) % kThreads) * N;
      if (first < cols) body(i, Columns<N>{first, N, true});
    }
  }
};

/// Calls body(RowTeam{}) with the team for rows of `cols` columns.
template <class Body>
void with_row_team(std::int64_t cols, const Body& body) {
  if (cols <= kWarpColumns) return body(RowTeam<32>{});
  body(RowTeam<kRowThreads>{});
}

/// Calls body(HeldRow{}) if kElements elements for each thread of its team cover a row, else body(LoopedRow{}). Short
/// rows get a HeldRow of a quarter as many elements, which takes fewer registers.
template <int N, int kElements, class Body>
void with_row(std::int64_t cols, bool aligned, const Body& body) {
  with_row_team(cols, [&]<class Team>(Team) {
    using Long = HeldRow<Team, N, kElements / N>;
    const bool can_be_held = aligned && cols % N == 0;
    if constexpr (kElements >= 4 * N) {
      using Short = HeldRow<Team, N, kElements / N / 4>;
      if (can_be_held && cols <= Short::kMaxCols) return body(Short{});
    }
    if (can_be_held && cols <= Long::kMaxCols) return body(Long{});
    body(LoopedRow<Team, N>{});
  });
}

}  // namespace zerofleet::cuda
