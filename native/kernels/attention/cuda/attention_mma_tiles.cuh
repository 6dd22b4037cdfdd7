// What both kernels of attention_mma_backward.cu have: tiles in shared memory, values of query rows, and gradients of
// scores.
#pragma once

#include <type_traits>

#include "kernels/attention/cuda/attention_mma.cuh"

namespace zerofleet::cuda {

inline constexpr int kBackwardWarps = 4, kBackwardThreads = 32 * kBackwardWarps;

/// Rows of a kernel's blocks: those of its own side, and those of the other side at once.
template <int kTilesOfWarp, int kRowsOfOther>
struct BlockRows {
  static constexpr int kTiles = kTilesOfWarp, kWarp = 16 * kTilesOfWarp, kOwn = kWarp * kBackwardWarps,
                       kOther = kRowsOfOther;
};
template <int kWidth>
using OneTile = BlockRows<1, kWidth <= 64 ? 64 : 32>;
template <int kWidth, bool kDrops>
using KeyRows = std::conditional_t<kDrops || (kWidth > 80), OneTile<kWidth>, BlockRows<2, kWidth <= 64 ? 32 : 16>>;
template <int kWidth, bool kDrops>
using QueryBlockRows = std::conditional_t<kDrops, OneTile<kWidth>, BlockRows<2, kWidth <= 64 ? 64 : 32>>;

/// Tiles in shared memory: two of the block's own rows, and two that it goes over, twice: while it works on one pair
/// the next is in transit.
template <class T, int kWidth, class Rows>
struct BackwardTiles {
  static constexpr int kOwnRows = Rows::kOwn, kOtherRows = Rows::kOther;
  static constexpr std::size_t kBytes = tile_bytes<T, kWidth>(2 * kOwnRows + 4 * kOtherRows);

  __device__ static T* own(int which) { return dynamic_shared<T>() + which * kOwnRows * kPitch<kWidth>; }
  __device__ static T* other(int stage, int which) {
    return dynamic_shared<T>() + (2 * kOwnRows + (2 * stage + which) * kOtherRows) * kPitch<kWidth>;
  }
  __device__ static void load_own(int which, const HeadTile<T>& from, bool aligned) {
    load_tile<kWidth, kOwnRows, kBackwardThreads>(own(which), from, aligned);
  }
  __device__ static void load_other(int stage, int which, const HeadTile<T>& from, bool aligned) {
    load_tile<kWidth, kOtherRows, kBackwardThreads>(other(stage, which), from, aligned);
  }
};

template <int kTiles>
__device__ void fill_factors(float (&factors)[kTiles][2], float factor) {
  ZF_DEVICE_UNROLL(kTiles)
  for (int r = 0; r < kTiles; ++r) factors[r][0] = factors[r][1] = factor;
}

/// Scores of a fragment that are visible and kept, as bits 4n + i: a word each.
struct ScoreBits {
  std::uint32_t visible = ~0U, kept = ~0U;
};

__device__ inline bool bit(std::uint32_t bits, int n, int i) { return (bits >> (4 * n + i) & 1U) != 0; }

/// From products q · k and dO · v to P with dropout's zeros in `products`, and dS less its factor in `dprobs`. `lse`
/// (in units of log2) and `delta` are functions of (n, i).
template <int kCols, class Lse, class Delta>
__device__ void mma_score_gradients(float log2_scale, float kept_factor, const ScoreBits& bits, const Lse& lse,
                                    const Delta& delta, FragmentC (&products)[kCols / 8],
                                    FragmentC (&dprobs)[kCols / 8]) {
  ZF_DEVICE_UNROLL(kCols / 8)
  for (int n = 0; n < kCols / 8; ++n) {
    ZF_DEVICE_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      float &p = products[n].v[i], &d = dprobs[n].v[i];
      const float prob = bit(bits.visible, n, i) ? fast_exp2(fmaf(p, log2_scale, -lse(n, i))) : 0.0F;
      const bool kept = bit(bits.kept, n, i);
      d = prob * ((kept ? d * kept_factor : 0.0F) - delta(n, i));
      p = kept ? prob : 0.0F;
    }
  }
}

/// Values of some query rows.
template <int kRows>
struct QueryRows {
  float lse[kRows],
      delta[kRows];  // lse in units of log2, infinite behind the end of the sequence: probabilities are 0 there
  int first_key[kRows];
};

template <int kRows, class T>
__device__ void load_query_rows(QueryRows<kRows>& rows, const AttentionBackwardCall<T>& a, std::int64_t batch, int head,
                                int query) {
  const AttentionSizes& s = a.call.sizes;
  for (int i = static_cast<int>(threadIdx.x); i < kRows; i += kBackwardThreads) {
    const bool inside = query + i < s.length;
    const std::int64_t row = row_index(s, batch, head, inside ? query + i : 0);
    rows.lse[i] = inside ? a.lse[row] * kLog2E : INFINITY;
    rows.delta[i] = inside ? a.delta[row] : 0.0F;
    rows.first_key[i] = a.call.mask.first_key(batch, query + i);
  }
}

}  // namespace zerofleet::cuda
