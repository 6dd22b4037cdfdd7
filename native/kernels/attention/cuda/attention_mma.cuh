#pragma once

#include <algorithm>
#include <initializer_list>

#include "kernels/attention/cuda/attention_call.cuh"
#include "kernels/common/cuda/dynamic_shared.cuh"
#include "kernels/common/cuda/mma.cuh"

// Products of the kernels of attention on tensor cores, as in FlashAttention-2. Each warp has 16 · kRowTiles rows of
// one operand to itself and all rows of the other. The sums of one product lie as the left operand of the next product
// needs its elements. So the scores, and the probabilities made of them, never leave the warp's registers.
//
// Heads of up to kWidth columns are filled up with zeros in shared memory. There a row is kWidth + 8 elements apart
// from the next, an odd multiple of 16 bytes for every width in use. So the eight rows of a matrix that ldmatrix reads
// lie in different banks, with no swizzle.
namespace zerofleet::cuda {

inline constexpr float kLog2E = 1.44269504F;
inline constexpr float kLn2 = 0.693147181F;

template <int kWidth>
inline constexpr int kPitch = kWidth + 8;

template <class T, int kWidth>
constexpr std::size_t tile_bytes(int rows) {
  static_assert(kWidth % 16 == 0);
  return static_cast<std::size_t>(rows) * kPitch<kWidth> * sizeof(T);
}

struct alignas(16) Piece {
  std::uint32_t words[4];
};

/// Reads rows of a head to shared memory, which are there after wait_for_copies() and a barrier. `aligned`: in pieces
/// of 16 bytes.
template <int kWidth, int kRows, int kThreads, class T>
__device__ void load_tile(T* tile, const HeadTile<T>& from, bool aligned) {
  constexpr int kPieces = kWidth / 8;
  for (int index = static_cast<int>(threadIdx.x); index < kRows * kPieces; index += kThreads) {
    const int row = index / kPieces, col = index % kPieces * 8;
    T* to = tile + row * kPitch<kWidth> + col;
    if (aligned) {
      const bool inside = row < from.rows && col < from.cols;
      copy16_async(to, inside ? from.data + row * from.stride + col : from.data, !inside);
    } else {
      for (int i = 0; i < 8; ++i) {
        to[i] = row < from.rows && col + i < from.cols ? from.data[row * from.stride + col + i] : T{};
      }
    }
  }
}

/// sums = rows of a · rows of b, over all columns; a is where the warp's own rows begin.
template <class T, int kWidth, int kRowTiles, int kColTiles>
__device__ void row_products(FragmentC (&sums)[kRowTiles][kColTiles], const T* a, const T* b) {
  static_assert(kColTiles % 2 == 0);
  const int lane = lane_of_warp();
  const T* a_row = a + lane % 16 * kPitch<kWidth> + lane / 16 * 8;
  const T* b_row = b + (lane / 16 * 8 + lane % 8) * kPitch<kWidth> + lane / 8 % 2 * 8;
  ZF_DEVICE_UNROLL(kRowTiles)
  for (int r = 0; r < kRowTiles; ++r) {
    ZF_DEVICE_UNROLL(kColTiles)
    for (int n = 0; n < kColTiles; ++n) sums[r][n] = FragmentC{};
  }
  ZF_DEVICE_UNROLL(kWidth / 16)
  for (int k = 0; k < kWidth; k += 16) {
    FragmentA left[kRowTiles];
    ZF_DEVICE_UNROLL(kRowTiles)
    for (int r = 0; r < kRowTiles; ++r) load_matrices<false>(left[r].r, a_row + 16 * r * kPitch<kWidth> + k);
    ZF_DEVICE_UNROLL(kColTiles / 2)
    for (int n = 0; n < kColTiles; n += 2) {
      std::uint32_t right[4];
      load_matrices<false>(right, b_row + 8 * n * kPitch<kWidth> + k);
      ZF_DEVICE_UNROLL(kRowTiles)
      for (int r = 0; r < kRowTiles; ++r) {
        mma<T>(sums[r][n], left[r], {{right[0], right[1]}});
        mma<T>(sums[r][n + 1], left[r], {{right[2], right[3]}});
      }
    }
  }
}

/// The left operand of a product, rounded to T; it takes half the registers.
template <class T, int kRowTiles, int kColTiles>
__device__ void round_left(const FragmentC (&from)[kRowTiles][kColTiles], FragmentA (&left)[kRowTiles][kColTiles / 2]) {
  static_assert(kColTiles % 2 == 0);
  ZF_DEVICE_UNROLL(kRowTiles)
  for (int r = 0; r < kRowTiles; ++r) {
    ZF_DEVICE_UNROLL(kColTiles / 2)
    for (int k = 0; k < kColTiles / 2; ++k) {
      const FragmentC &low = from[r][2 * k], &high = from[r][2 * k + 1];
      left[r][k] = {{packed<T>(low.v[0], low.v[1]), packed<T>(low.v[2], low.v[3]), packed<T>(high.v[0], high.v[1]),
                     packed<T>(high.v[2], high.v[3])}};
    }
  }
}

/// sums += left · rows of b, of which there are as many as left has columns.
template <class T, int kWidth, int kRowTiles, int kSteps>
__device__ void add_product(FragmentC (&sums)[kRowTiles][kWidth / 8], const FragmentA (&left)[kRowTiles][kSteps],
                            const T* b) {
  const int lane = lane_of_warp();
  const T* b_row = b + lane % 16 * kPitch<kWidth> + lane / 16 * 8;
  ZF_DEVICE_UNROLL(kSteps)
  for (int k = 0; k < kSteps; ++k) {
    ZF_DEVICE_UNROLL(kWidth / 16)
    for (int n = 0; n < kWidth / 8; n += 2) {
      std::uint32_t right[4];
      load_matrices<true>(right, b_row + 16 * k * kPitch<kWidth> + 8 * n);
      ZF_DEVICE_UNROLL(kRowTiles)
      for (int r = 0; r < kRowTiles; ++r) {
        mma<T>(sums[r][n], left[r][k], {{right[0], right[1]}});
        mma<T>(sums[r][n + 1], left[r][k], {{right[2], right[3]}});
      }
    }
  }
}

/// The same with a left operand that is rounded to T first.
template <class T, int kWidth, int kRowTiles, int kColTiles>
__device__ void add_product(FragmentC (&sums)[kRowTiles][kWidth / 8], const FragmentC (&left)[kRowTiles][kColTiles],
                            const T* b) {
  FragmentA rounded[kRowTiles][kColTiles / 2];
  round_left<T>(left, rounded);
  add_product<T, kWidth>(sums, rounded, b);
}

/// Row and column within a warp's rows and a tile's columns of v[i] of fragment [r][n].
__device__ inline int fragment_row(int r, int i) { return 16 * r + lane_of_warp() / 4 + i / 2 * 8; }
__device__ inline int fragment_col(int n, int i) { return 8 * n + lane_of_warp() % 4 * 2 + i % 2; }

/// Over the four lanes of a row.
__device__ inline float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 1));
  return fmaxf(value, __shfl_xor_sync(kWholeWarp, value, 2));
}
__device__ inline float row_sum(float value) {
  value = value + __shfl_xor_sync(kWholeWarp, value, 1);
  return value + __shfl_xor_sync(kWholeWarp, value, 2);
}

/// Writes a warp's sums · factor (by row tile and half) to rows of a head. The results go by way of the warp's own rows
/// in shared memory, so that neighbouring lanes write neighbouring pieces of 16 bytes.
template <class T, int kWidth, int kRowTiles>
__device__ void store_rows(T* own, const FragmentC (&sums)[kRowTiles][kWidth / 8], const float (&factor)[kRowTiles][2],
                           T* target, std::int64_t stride, int rows, int cols, bool aligned) {
  __syncwarp();  // all lanes have read the previous contents
  ZF_DEVICE_UNROLL(kRowTiles)
  for (int r = 0; r < kRowTiles; ++r) {
    ZF_DEVICE_UNROLL(kWidth / 8)
    for (int n = 0; n < kWidth / 8; ++n) {
      ZF_DEVICE_UNROLL(2)
      for (int half = 0; half < 2; ++half) {
        const float *v = sums[r][n].v + 2 * half, by = factor[r][half];
        T* at = own + fragment_row(r, 2 * half) * kPitch<kWidth> + fragment_col(n, 0);
        *reinterpret_cast<std::uint32_t*>(at) = packed<T>(v[0] * by, v[1] * by);
      }
    }
  }
  __syncwarp();
  constexpr int kPieces = kWidth / 8;
  for (int index = lane_of_warp(); index < 16 * kRowTiles * kPieces; index += 32) {
    const int row = index / kPieces, col = index % kPieces * 8;
    if (row >= rows) break;
    const T* from = own + row * kPitch<kWidth> + col;
    T* to = target + row * stride + col;
    if (!aligned) {
      for (int i = 0; i < 8 && col + i < cols; ++i) to[i] = from[i];
    } else if (col < cols) {
      *reinterpret_cast<Piece*>(to) = *reinterpret_cast<const Piece*>(from);
    }
  }
}

/// Returns true if all rows of heads begin at multiples of 16 bytes and are whole pieces of them.
inline bool in_pieces(const AttentionShape& shape, std::initializer_list<ConstMatrix> matrices) {
  const auto fits = [](const ConstMatrix& m) {
    return reinterpret_cast<std::uintptr_t>(m.data) % 16 == 0 && m.stride % 8 == 0;
  };
  return shape.head_dim % 8 == 0 && std::all_of(matrices.begin(), matrices.end(), fits);
}

/// Calls body.operator()<kWidth>() with the least width that has room for heads of up to 128 columns. Those that models
/// have, 64, 80, 96 and 128, have kernels of their own.
template <class Body>
void with_width(std::int64_t head_dim, const Body& body) {
  if (head_dim <= 32) return body.template operator()<32>();
  if (head_dim <= 64) return body.template operator()<64>();
  if (head_dim <= 80) return body.template operator()<80>();
  if (head_dim <= 96) return body.template operator()<96>();
  return body.template operator()<128>();
}

/// Calls body(static_cast<T*>(nullptr)) with bf16 or f16.
template <class Body>
void with_half(DType dtype, const Body& body) {
  if (dtype == DType::kBF16) return body(static_cast<bf16*>(nullptr));
  body(static_cast<f16*>(nullptr));
}

}  // namespace zerofleet::cuda
