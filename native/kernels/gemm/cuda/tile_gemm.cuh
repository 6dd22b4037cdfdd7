#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/cuda/dynamic_shared.cuh"
#include "kernels/common/cuda/mma.cuh"

// Operand pipeline of tile_gemm.cu's blocks: tiles of A and B in shared memory, kStages of them in flight.
//
// A row of a tile is an odd multiple of 16 bytes apart from the next one (80 or 272). So the eight rows that ldmatrix
// reads at once lie in different banks.
namespace zerofleet::cuda {

inline constexpr int kTileRows = 128, kTileCols = 128;  // of C, by a block
inline constexpr int kTileDepth = 32;                   // k at once
inline constexpr int kTileThreads = 256;
inline constexpr int kTileStages = 4;
inline constexpr int kMaxTileParts = 2;  // of B

/// A product in the form that its kernel takes; lengths and strides in elements.
template <class T>
struct TileCall {
  const T* a;
  const T* b[kMaxTileParts];
  std::byte* c;
  const std::byte* bias;          // (n) of c's dtype, or null
  const std::int32_t* row_range;  // as in GemmProblem
  int a_stride, b_stride[kMaxTileParts], c_stride;
  int m, n, k_of[kMaxTileParts];
  DType c_dtype;
  bool accumulate;
  float alpha;
};

/// A tile of an operand: kWide of its rows and columns of C, kTileDepth of k. kAlongK: k is the row in memory.
template <class T, bool kAlongK, int kWide>
struct OperandTile {
  static constexpr int kRows = kAlongK ? kTileDepth : kWide, kCols = kAlongK ? kWide : kTileDepth;
  static constexpr int kPitch = kCols + 8;
  static constexpr std::size_t kBytes = std::size_t{kRows} * kPitch * sizeof(T);

  /// Queues its copies; elements outside become zeros. `wide` and `k`: where it begins in `data`; the ends are the
  /// operand's.
  __device__ static void load(T* tile, const T* data, int stride, int wide, int wide_end, int k, int k_end) {
    const int row_begin = kAlongK ? k : wide, col_begin = kAlongK ? wide : k;
    const int row_end = kAlongK ? k_end : wide_end, col_end = kAlongK ? wide_end : k_end;
    constexpr int kPieces = kRows * kCols / 8;
    static_assert(kPieces % kTileThreads == 0);
    ZF_DEVICE_UNROLL(kPieces / kTileThreads)
    for (int i = 0; i < kPieces / kTileThreads; ++i) {
      const int piece = i * kTileThreads + static_cast<int>(threadIdx.x);
      const int row = piece / (kCols / 8), col = piece % (kCols / 8) * 8;
      const bool inside = row_begin + row < row_end && col_begin + col < col_end;
      const std::int64_t at = static_cast<std::int64_t>(row_begin + row) * stride + col_begin + col;
      copy16_async(tile + row * kPitch + col, inside ? data + at : data, !inside);
    }
  }

  /// Two neighbouring squares of 16 or 8 by 16 of k as fragments want them: of A one square of 16 rows, of B two of 8
  /// columns. `wide`, `k`: where they begin in the tile. kLeft: for A.
  template <bool kLeft>
  __device__ static void fragment(std::uint32_t (&r)[4], const T* tile, int wide, int k) {
    const int lane = lane_of_warp(), matrix = lane / 8;
    // A's four matrices go over rows first, B's over k first.
    const int wide_step = kLeft ? matrix % 2 * 8 : matrix / 2 * 8, k_step = kLeft ? matrix / 2 * 8 : matrix % 2 * 8;
    if constexpr (kAlongK) {
      load_matrices<true>(r, tile + (k + k_step + lane % 8) * kPitch + wide + wide_step);
    } else {
      load_matrices<false>(r, tile + (wide + wide_step + lane % 8) * kPitch + k + k_step);
    }
  }
};

/// The operands of a block, in steps of kTileDepth over k, which begin anew with each part of B.
template <class T, bool kATransposed, bool kBAlongK>
struct TileFeed {
  using A = OperandTile<T, kATransposed, kTileRows>;
  using B = OperandTile<T, kBAlongK, kTileCols>;
  static constexpr std::size_t kStageBytes = A::kBytes + B::kBytes;

  const TileCall<T>& call;
  int row, col;                     // of the block in C
  int part = 0, k = 0, before = 0;  // next position: k of a part, and how much of A lies before the part
  int num_queued = 0;

  __device__ T* a_of(int step) const { return stage(step); }
  __device__ T* b_of(int step) const { return stage(step) + A::kBytes / sizeof(T); }

  /// Queues the next step as a group of its own, an empty one when there is none.
  __device__ void queue_next() {
    while (part < kMaxTileParts && k >= call.k_of[part]) {
      before += call.k_of[part];
      ++part;
      k = 0;
    }
    if (part < kMaxTileParts && k < call.k_of[part]) {
      A::load(a_of(num_queued), call.a, call.a_stride, row, call.m, before + k, before + call.k_of[part]);
      B::load(b_of(num_queued), call.b[part], call.b_stride[part], col, call.n, k, call.k_of[part]);
      k += kTileDepth;
    }
    ++num_queued;
    end_copy_group();
  }

 private:
  __device__ T* stage(int step) const {
    return dynamic_shared<T>() + step % kTileStages * static_cast<int>(kStageBytes / sizeof(T));
  }
};

}  // namespace zerofleet::cuda
