#pragma once

#include <bit>
#include <cstdint>

#include "kernels/common/cuda/block_sum.cuh"
#include "kernels/common/cuda/column_sums.cuh"
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/common/cuda/warp.cuh"

// Work of a block in the one pass of norm_backward.cu.
namespace zerofleet::cuda {

inline constexpr int kPassThreads = 256;
inline constexpr int kWidePassThreads = 1024;  // of a block with one row at a time

template <class T>
struct BackwardRows {
  Rows<const T> dy, x, residual;
  Rows<T> dx;
  const T* weight;
  float weight_offset;
  const float *mean, *rstd;
  std::int64_t rows, cols, matrix_rows;  // rows: those of all heads
  unsigned heads;
  bool aligned;

  /// Position of a head's row: row of the matrix, first column, index of its mean and deviation.
  struct Position {
    std::int64_t row, first, stat;
  };
  __device__ Position position(std::int64_t index) const {
    if (heads == 1) return {index, 0, index};
    const auto row = static_cast<std::int64_t>(static_cast<unsigned>(index) / heads);
    const std::int64_t head = index - row * heads;
    return {row, head * cols, head * matrix_rows + row};
  }
};

/// Gradient of an element by those of its row: g − mean(g) − x̂ · mean(g · x̂), times rstd.
template <bool kCentred>
__device__ float gradient(float grad, float normed, float rstd, float mean_grad, float mean_product) {
  if constexpr (kCentred) return rstd * (grad - mean_grad - normed * mean_product);
  return rstd * (grad - normed * mean_product);
}

template <bool kCentred>
__device__ float normed(float x, float mean, float rstd) {
  if constexpr (kCentred) return (x - mean) * rstd;
  return x * rstd;
}

/// The elements of a thread, kAccesses of N neighbours, as they lie in memory: in 16 bits half as many registers.
template <class T, int N, int kAccesses>
struct Words {
  struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Access {
    std::uint32_t word[N * sizeof(T) / 4];
  };
  Access access[kAccesses];

  __device__ void read(int i, const T* from) { access[i] = *reinterpret_cast<const Access*>(from); }
  __device__ float at(int i, int k) const {
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<float>(access[i].word[k]);
    } else {
      return widened(T{static_cast<std::uint16_t>(access[i].word[k / 2] >> (k % 2 * 16))});
    }
  }
  /// The same words, of which the compiler does not know that they were widened before: else it would keep that.
  __device__ Words anew() const {
    Words same;
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
#pragma unroll
      for (int k = 0; k < static_cast<int>(N * sizeof(T) / 4); ++k) {
        same.access[i].word[k] = static_cast<std::uint32_t>(not_hoisted(static_cast<int>(access[i].word[k])));
      }
    }
    return same;
  }
};

/// Distribution of rows of up to kTeam · N · kAccesses columns over a block.
template <int kThreads, int kTeamThreads, int kWidthOfAccess, int kAccessesOfThread>
struct PassShape {
  static constexpr bool kReadsAhead = kThreads < kWidePassThreads;  // a thread of 1024 has no registers left for that
  static constexpr int kBlock = kThreads, kTeam = kTeamThreads, N = kWidthOfAccess, kAccesses = kAccessesOfThread;
  static constexpr int kTeams = kBlock / kTeam, kElements = N * kAccesses;
  __device__ static int team() { return static_cast<int>(threadIdx.x) / kTeam; }
  __device__ static int column(int access) { return (access * kTeam + static_cast<int>(threadIdx.x) % kTeam) * N; }
};

template <class T, bool kCentred, class Shape>
struct OnePass {
  static constexpr int N = Shape::N, kAccesses = Shape::kAccesses, kSums = kCentred ? 2 : 1;
  using Own = Words<T, N, kAccesses>;
  using Accesses = Lanes<N>[kAccesses];

  /// A thread's part of a row, and what belongs to the row. Zeros beyond the last row.
  struct Part {
    Own dy, x;
    float mean, rstd;

    __device__ float normed(int i, int k) const { return cuda::normed<kCentred>(x.at(i, k), mean, rstd); }
  };

  const BackwardRows<T>& a;

  __device__ bool has(int access) const { return Shape::column(access) < a.cols; }

  __device__ Part read(std::int64_t row, std::int64_t end) const {
    Part part{};
    if (row >= end) return part;
    const auto at = a.position(row);
    part.rstd = a.rstd[at.stat];
    if constexpr (kCentred) part.mean = a.mean[at.stat];
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      if (!has(i)) continue;
      const std::int64_t first = at.first + Shape::column(i);
      part.dy.read(i, a.dy.row(at.row) + first);
      part.x.read(i, a.x.row(at.row) + first);
    }
    return part;
  }

  __device__ Own residual(std::int64_t row, std::int64_t end) const {
    Own before{};
    if (a.residual.data == nullptr || row >= end) return before;
    const auto at = a.position(row);
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      if (has(i)) before.read(i, a.residual.row(at.row) + at.first + Shape::column(i));
    }
    return before;
  }

  /// Sums over a team. All threads of the block come here, once for each of its rows; `step` counts them.
  __device__ static void add_up(int step, float (&values)[kSums]) {
    constexpr int kWarps = Shape::kTeam / 32;
#pragma unroll
    for (int s = 0; s < kSums; ++s) values[s] = warp_sum(values[s]);
    if constexpr (kWarps > 1) {
      // Two, so that one barrier is enough: the next one is behind all reads of the sums before these.
      __shared__ float parts[2][kSums][Shape::kBlock / 32];
      auto& mine = parts[step % 2];
#pragma unroll
      for (int s = 0; s < kSums; ++s) {
        if (lane_of_warp() == 0) mine[s][threadIdx.x / 32] = values[s];
      }
      __syncthreads();
#pragma unroll
      for (int s = 0; s < kSums; ++s) {
        values[s] = 0;
#pragma unroll
        for (int warp = 0; warp < kWarps; ++warp) values[s] = values[s] + mine[s][Shape::team() * kWarps + warp];
      }
    }
  }

  __device__ void row_sums(const Part& part, const Own& weight, float (&sums)[kSums]) const {
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float grad = part.dy.at(i, k) * (weight.at(i, k) + a.weight_offset);
        sums[0] = fmaf(grad, part.normed(i, k), sums[0]);
        if constexpr (kCentred) sums[1] = sums[1] + grad;
      }
    }
  }

  /// dx of this thread's part of a row.
  __device__ void store_row(std::int64_t row, const Part& part, const Own& weight, const Own& before,
                            const float (&means)[kSums]) const {
    const auto at = a.position(row);
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      if (!has(i)) continue;
      const Columns<N> columns{at.first + Shape::column(i), N, true};
      Lanes<N> grad = lanes<N>([&](int k) {
        return gradient<kCentred>(part.dy.at(i, k) * (weight.at(i, k) + a.weight_offset), part.normed(i, k), part.rstd,
                                  means[kSums - 1], means[0]);
      });
      if (a.residual.data != nullptr) grad = lanes<N>([&](int k) { return before.at(i, k) + grad.v[k]; });
      store(a.dx.row(at.row), columns, grad);
    }
  }

  __device__ static void add_columns(const Part& part, Accesses (&totals)[kSums]) {
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
#pragma unroll
      for (int k = 0; k < N; ++k) {
        const float d = part.dy.at(i, k);
        totals[0][i].v[k] = fmaf(d, part.normed(i, k), totals[0][i].v[k]);
        if constexpr (kCentred) totals[1][i].v[k] = totals[1][i].v[k] + d;
      }
    }
  }

  /// Stores the sums of a block's teams together, in order, as one part.
  __device__ void store_part(const Accesses (&totals)[kSums], const SumArrays<kSums>& parts) const {
    constexpr int kTeamCols = Shape::kTeam * Shape::kElements;
    __shared__ float of_teams[Shape::kTeams][kTeamCols];
    const int cols = static_cast<int>(a.cols);
#pragma unroll
    for (int s = 0; s < kSums; ++s) {
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kAccesses; ++i) {
#pragma unroll
        for (int k = 0; k < N; ++k) of_teams[Shape::team()][Shape::column(i) + k] = totals[s][i].v[k];
      }
      __syncthreads();
      for (int col = static_cast<int>(threadIdx.x); col < cols; col += Shape::kBlock) {
        float total = 0;
        for (int team = 0; team < Shape::kTeams; ++team) total = total + of_teams[team][col];
        parts.array[s][static_cast<std::int64_t>(blockIdx.x) * cols + col] = total;
      }
    }
  }

  __device__ void run(std::int64_t rows_of_part, const SumArrays<kSums>& parts) const {
    const std::int64_t begin = static_cast<std::int64_t>(blockIdx.x) * rows_of_part;
    const std::int64_t end = begin + rows_of_part < a.rows ? begin + rows_of_part : a.rows;
    Own weight{};
#pragma unroll
    for (int i = 0; i < kAccesses; ++i) {
      if (has(i)) weight.read(i, a.weight + Shape::column(i));
    }
    const bool has_sums = parts.array[0] != nullptr;  // else nobody needs the gradients of weights and biases
    Accesses totals[kSums] = {};
    Part next{};
    if constexpr (Shape::kReadsAhead) next = read(begin + Shape::team(), end);
    int step = 0;
    for (std::int64_t first = begin; first < end; first += Shape::kTeams, ++step) {
      const std::int64_t row = first + Shape::team();
      Part part = Shape::kReadsAhead ? next : read(row, end);
      if constexpr (Shape::kReadsAhead) next = read(row + Shape::kTeams, end);
      const Own before = residual(row, end);
      if (has_sums) add_columns(part, totals);
      float means[kSums] = {};
      row_sums(part, weight.anew(), means);
      add_up(step, means);
#pragma unroll
      for (int s = 0; s < kSums; ++s) means[s] = means[s] / static_cast<float>(a.cols);
      part.dy = part.dy.anew();
      part.x = part.x.anew();
      if (row < end) store_row(row, part, weight.anew(), before, means);
    }
    if (has_sums) store_part(totals, parts);
  }
};

}  // namespace zerofleet::cuda
