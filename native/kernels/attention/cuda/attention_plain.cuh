#pragma once

#include "kernels/attention/cuda/attention_call.cuh"
#include "kernels/common/cuda/warp.cuh"

// Products of the kernels of attention that have no tensor cores in them: those of fp32, and of heads that are wider
// than the others take. 256 threads are 16 × 16. Thread (y, x) has rows 4y to 4y + 3 and columns x, x + 16, x + 32 and
// x + 48 of a 64 × 64 tile. So the 16 threads of a row are lanes of one warp, and no access to shared memory conflicts.
// All arithmetic is fp32, nothing is rounded before the results.
namespace zerofleet::cuda {

inline constexpr int kPlainTile = 64;
inline constexpr int kPlainThreads = 256;
inline constexpr int kPlainDepth = 32;

using PlainSums = float[4][4];

struct PlainShared {
  union {
    struct {
      float a[kPlainTile][kPlainDepth + 1], b[kPlainTile][kPlainDepth + 1];
    };
    float right[kPlainTile][kPlainTile];
  };
  float left[kPlainTile][kPlainTile + 1];
};

__device__ inline int plain_row(int i) { return static_cast<int>(threadIdx.x) / 16 * 4 + i; }
__device__ inline int plain_col(int j) { return static_cast<int>(threadIdx.x) % 16 + 16 * j; }

template <class T>
__device__ float element_of(const HeadTile<T>& tile, int row, int col) {
  return row < tile.rows && col < tile.cols ? to_float(tile.data[row * tile.stride + col]) : 0.0F;
}

/// sums = a · bᵀ, over all columns of both.
template <class T>
__device__ void row_products(const HeadTile<T>& a, const HeadTile<T>& b, PlainShared& shared, PlainSums& sums) {
  for (int i = 0; i < 4; ++i) {
    for (int j = 0; j < 4; ++j) sums[i][j] = 0;
  }
  for (int first = 0; first < a.cols; first += kPlainDepth) {
    __syncthreads();
    for (int index = static_cast<int>(threadIdx.x); index < kPlainTile * kPlainDepth; index += kPlainThreads) {
      const int row = index / kPlainDepth, col = index % kPlainDepth;
      shared.a[row][col] = element_of(a, row, first + col);
      shared.b[row][col] = element_of(b, row, first + col);
    }
    __syncthreads();
    const int depth = a.cols - first < kPlainDepth ? a.cols - first : kPlainDepth;
    for (int k = 0; k < depth; ++k) {
      ZF_DEVICE_UNROLL(4)
      for (int i = 0; i < 4; ++i) {
        ZF_DEVICE_UNROLL(4)
        for (int j = 0; j < 4; ++j) {
          sums[i][j] = fmaf(shared.a[plain_row(i)][k], shared.b[plain_col(j)][k], sums[i][j]);
        }
      }
    }
  }
}

/// Sets shared.left = values, once no thread reads the previous contents.
__device__ inline void put_left(PlainShared& shared, const PlainSums& values) {
  __syncthreads();
  ZF_DEVICE_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    ZF_DEVICE_UNROLL(4)
    for (int j = 0; j < 4; ++j) shared.left[plain_row(i)][plain_col(j)] = values[i][j];
  }
}

/// sums[chunk] += left · the columns of b from first_col + 64 · chunk on, or the transpose of left.
template <int kChunks, bool kTransposed, class T>
__device__ void add_left_product(PlainShared& shared, const HeadTile<T>& b, int first_col, PlainSums (&sums)[kChunks]) {
  ZF_DEVICE_UNROLL(kChunks)
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    __syncthreads();
    for (int index = static_cast<int>(threadIdx.x); index < kPlainTile * kPlainTile; index += kPlainThreads) {
      const int row = index / kPlainTile, col = index % kPlainTile;
      shared.right[row][col] = element_of(b, row, first_col + chunk * kPlainTile + col);
    }
    __syncthreads();
    for (int k = 0; k < kPlainTile; ++k) {
      ZF_DEVICE_UNROLL(4)
      for (int i = 0; i < 4; ++i) {
        const float left = kTransposed ? shared.left[k][plain_row(i)] : shared.left[plain_row(i)][k];
        ZF_DEVICE_UNROLL(4)
        for (int j = 0; j < 4; ++j) sums[chunk][i][j] = fmaf(left, shared.right[k][plain_col(j)], sums[chunk][i][j]);
      }
    }
  }
}

/// Writes sums · factor[i] to rows of one head's columns, from `target` on.
template <int kChunks, class T>
__device__ void store_plain(T* target, std::int64_t stride, int rows, int cols, int first_col,
                            const PlainSums (&sums)[kChunks], const float (&factor)[4]) {
  ZF_DEVICE_UNROLL(kChunks)
  for (int chunk = 0; chunk < kChunks; ++chunk) {
    ZF_DEVICE_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      ZF_DEVICE_UNROLL(4)
      for (int j = 0; j < 4; ++j) {
        const int row = plain_row(i), col = first_col + chunk * kPlainTile + plain_col(j);
        if (row < rows && col < cols) target[row * stride + col] = rounded_to<T>(sums[chunk][i][j] * factor[i]);
      }
    }
  }
}

/// Over the 16 threads of a row.
__device__ inline float plain_row_max(float value) {
  for (int half = 8; half >= 1; half /= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, half));
  return value;
}
__device__ inline float plain_row_sum(float value) {
  for (int half = 8; half >= 1; half /= 2) value = value + __shfl_xor_sync(kWholeWarp, value, half);
  return value;
}

}  // namespace zerofleet::cuda
