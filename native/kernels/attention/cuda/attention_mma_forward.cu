// Attention on tensor cores, forward. A block of four warps has 128 query rows of one head, 32 a warp. So each fragment
// of keys and values from shared memory serves two products. Over blocks of 64 keys, with m the largest score so far: P
// = exp(S − m), sums = sums · exp(m before − m) + P V, total likewise; out = sums / total. P is rounded to the storage
// type for the product; `total` sums unrounded values. The values are copied to shared memory while the scores are
// computed, the next keys while the values are multiplied.
//
// A product of a warp, 32 × 64 × width, reads 64 · width elements of keys or values and makes 32 times as many
// multiply-adds. With 16 rows a warp it would be 16 times as many. At that ratio an A100's shared memory (128 bytes a
// clock) is just as fast as its tensor cores (1024 multiply-adds a clock).
//
// Shared memory: 256 rows, 69632 bytes at width 128 and 36864 at 64. Registers by nvcc 13.0, sm_80 / sm_90: 228 / 232
// at width 64, 239 / 240 at 80, 250 / 250 at 96, 254 / 254 at 128; none is spilled. Two blocks of 128 threads fit on a
// multiprocessor. At width 128 shared memory of an A100 has room for no more. None of this was measured.
#include "kernels/attention/cuda/attention_launch.h"
#include "kernels/attention/cuda/attention_mma.cuh"

namespace zerofleet::cuda {
namespace {

constexpr int kForwardWarps = 4, kForwardThreads = 32 * kForwardWarps;
constexpr int kKeys = 64;

template <class T, int kWidth>
struct Forward {
  static constexpr int kRowTiles = 2, kWarpRows = 16 * kRowTiles, kRows = kForwardWarps * kWarpRows;
  static constexpr std::size_t kSharedBytes = tile_bytes<T, kWidth>(kRows + 2 * kKeys);
};

/// A thread's state of its rows, by row tile and half; `top` is in units of log2, as scores become powers of two.
template <int kRowTiles>
struct MmaRowState {
  float top[kRowTiles][2], total[kRowTiles][2];
};

/// Position of a warp: its first query row, and the block of keys.
struct FragmentOrigin {
  int batch, head, query, key;
};

template <int kRowTiles>
__device__ void hide(const AttentionMask& mask, const FragmentOrigin& at, FragmentC (&scores)[kRowTiles][kKeys / 8]) {
  ZF_DEVICE_UNROLL(kRowTiles)
  for (int r = 0; r < kRowTiles; ++r) {
    ZF_DEVICE_UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      const int query = at.query + fragment_row(r, 2 * half), first_key = mask.first_key(at.batch, query);
      ZF_DEVICE_UNROLL(kKeys / 8)
      for (int n = 0; n < kKeys / 8; ++n) {
        ZF_DEVICE_UNROLL(2)
        for (int i = 0; i < 2; ++i) {
          const int key = at.key + fragment_col(n, i);
          if (key > query || key < first_key) scores[r][n].v[2 * half + i] = -INFINITY;
        }
      }
    }
  }
}

template <class T, int kRowTiles>
__device__ void drop(const AttentionCall<T>& c, const FragmentOrigin& at, FragmentC (&probs)[kRowTiles][kKeys / 8]) {
  ZF_DEVICE_UNROLL(kRowTiles)
  for (int r = 0; r < kRowTiles; ++r) {
    const std::uint32_t kept = kept_bits<kKeys / 2>(c, [&](int e) {
      return ScoreIndex{row_index(c.sizes, at.batch, at.head, at.query + fragment_row(r, e % 4)),
                        at.key + fragment_col(e / 4, e % 4)};
    });
    ZF_DEVICE_UNROLL(kKeys / 8)
    for (int n = 0; n < kKeys / 8; ++n) {
      ZF_DEVICE_UNROLL(4)
      for (int i = 0; i < 4; ++i) {
        if ((kept >> (4 * n + i) & 1U) == 0) probs[r][n].v[i] = 0;
      }
    }
  }
}

/// Scores become probabilities relative to the largest score so far; sums and total move on to it.
template <int kWidth, int kRowTiles>
__device__ void mma_softmax_step(float log2_scale, MmaRowState<kRowTiles>& rows,
                                 FragmentC (&scores)[kRowTiles][kKeys / 8], FragmentC (&sums)[kRowTiles][kWidth / 8]) {
  ZF_DEVICE_UNROLL(kRowTiles)
  for (int r = 0; r < kRowTiles; ++r) {
    ZF_DEVICE_UNROLL(2)
    for (int half = 0; half < 2; ++half) {
      float largest = -INFINITY;
      ZF_DEVICE_UNROLL(kKeys / 8)
      for (int n = 0; n < kKeys / 8; ++n)
        largest = fmaxf(largest, fmaxf(scores[r][n].v[2 * half], scores[r][n].v[2 * half + 1]));
      const float before = rows.top[r][half], top = fmaxf(before, row_max(largest) * log2_scale);
      const float reference = top == -INFINITY ? 0.0F : top;  // no key seen yet: all of it is zero
      float total = 0;
      ZF_DEVICE_UNROLL(kKeys / 8)
      for (int n = 0; n < kKeys / 8; ++n) {
        ZF_DEVICE_UNROLL(2)
        for (int i = 0; i < 2; ++i) {
          float& v = scores[r][n].v[2 * half + i];
          v = fast_exp2(fmaf(v, log2_scale, -reference));
          total = total + v;
        }
      }
      const float factor = fast_exp2(before - reference);
      rows.top[r][half] = top;
      rows.total[r][half] =
          fmaf(rows.total[r][half], factor, total);  // of this lane's keys; lanes are added at the end
      ZF_DEVICE_UNROLL(kWidth / 8)
      for (int n = 0; n < kWidth / 8; ++n) {
        sums[r][n].v[2 * half] = sums[r][n].v[2 * half] * factor;
        sums[r][n].v[2 * half + 1] = sums[r][n].v[2 * half + 1] * factor;
      }
    }
  }
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kForwardThreads, 2)
    mma_forward_kernel(const __grid_constant__ AttentionForwardCall<T> a, int num_tiles, bool aligned) {
  using F = Forward<T, kWidth>;
  constexpr int kRowTiles = F::kRowTiles;
  T* queries = dynamic_shared<T>();
  T *keys = queries + F::kRows * kPitch<kWidth>, *values = keys + kKeys * kPitch<kWidth>;
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.heads, F::kRows, num_tiles, true);
  const int key_col = s.heads + kv_head_of(s, tile.head), value_col = key_col + s.kv_heads;
  const int own_row = static_cast<int>(threadIdx.x) / 32 * F::kWarpRows, query = tile.first + own_row;
  T* own = queries + own_row * kPitch<kWidth>;
  const float log2_scale = c.scale * kLog2E;
  MmaRowState<kRowTiles> rows;
  for (int r = 0; r < kRowTiles; ++r) {
    for (int half = 0; half < 2; ++half) {
      rows.top[r][half] = -INFINITY;
      rows.total[r][half] = 0;
    }
  }
  const int last_first_key = c.mask.first_key(tile.batch, query + F::kWarpRows - 1);
  FragmentC sums[kRowTiles][kWidth / 8] = {};
  const HeadTile<T> query_rows = head_tile(c.qkv, s, tile.batch, tile.head, tile.first);
  const int end = tile.first + (query_rows.rows < F::kRows ? query_rows.rows : F::kRows);
  int key = c.mask.first_key(tile.batch, tile.first) / kKeys * kKeys;
  load_tile<kWidth, F::kRows, kForwardThreads>(queries, query_rows, aligned);
  load_tile<kWidth, kKeys, kForwardThreads>(keys, head_tile(c.qkv, s, tile.batch, key_col, key), aligned);
  for (; key < end; key += kKeys) {
    wait_for_copies();
    __syncthreads();  // keys are there; values are no longer read
    load_tile<kWidth, kKeys, kForwardThreads>(values, head_tile(c.qkv, s, tile.batch, value_col, key), aligned);
    const bool sees = key < query + F::kWarpRows && query < s.length;  // alike in all lanes
    const FragmentOrigin at{tile.batch, tile.head, query, key};
    FragmentA probs[kRowTiles][kKeys / 16];
    if (sees) {
      FragmentC scores[kRowTiles][kKeys / 8];
      row_products<T, kWidth>(scores, own, keys);
      if (key + kKeys - 1 > query || last_first_key > key) hide(c.mask, at, scores);
      mma_softmax_step<kWidth>(log2_scale, rows, scores, sums);
      if (c.drops) drop(c, at, scores);
      round_left<T>(scores, probs);  // before the copies below, whose addresses need registers, too
    }
    wait_for_copies();
    __syncthreads();  // values are there; keys are no longer read
    if (key + kKeys < end)
      load_tile<kWidth, kKeys, kForwardThreads>(keys, head_tile(c.qkv, s, tile.batch, key_col, key + kKeys), aligned);
    if (sees) add_product<T, kWidth>(sums, probs, values);
  }
  float factor[kRowTiles][2];
  for (int r = 0; r < kRowTiles; ++r) {
    for (int half = 0; half < 2; ++half) {
      const float total = row_sum(rows.total[r][half]);
      factor[r][half] = (c.drops ? c.dropout.scale : 1.0F) / total;
      const int position = query + fragment_row(r, 2 * half);
      if (lane_of_warp() % 4 == 0 && position < s.length) {
        a.lse[row_index(s, tile.batch, tile.head, position)] = fmaf(rows.top[r][half], kLn2, logf(total));
      }
    }
  }
  T* out = a.out.row(token_row(s, tile.batch, query)) + static_cast<std::int64_t>(tile.head) * s.head_dim;
  // The warp's rows are found once more: a pointer that is kept through the loop is spilled at width 128.
  T* staged = queries + not_hoisted(static_cast<int>(threadIdx.x)) / 32 * F::kWarpRows * kPitch<kWidth>;
  store_rows<T, kWidth>(staged, sums, factor, out, a.out.stride, s.length - query, s.head_dim, aligned);
}

template <class T, int kWidth>
void launch_forward(const Context& ctx, const AttentionForward& args) {
  using F = Forward<T, kWidth>;
  const AttentionForwardCall<T> call{attention_call<T>(args.shape, args.qkv, args.options), rows_of<T>(args.out),
                                     args.lse.data()};
  const unsigned num_tiles = num_blocks_for(args.shape.sequence_length, F::kRows);
  const unsigned blocks = num_blocks_for(num_tiles * args.shape.batch * args.shape.num_heads, 1);
  const bool aligned = in_pieces(args.shape, {args.qkv, args.out});
  allow_dynamic_shared<mma_forward_kernel<T, kWidth>, F::kSharedBytes>("attention");
  launch("attention", stream_of(ctx), {blocks, kForwardThreads, F::kSharedBytes}, mma_forward_kernel<T, kWidth>, call,
         static_cast<int>(num_tiles), aligned);
}

}  // namespace

void mma_attention(const Context& ctx, const AttentionForward& args) {
  with_half(args.qkv.dtype, [&]<class T>(T*) {
    with_width(args.shape.head_dim, [&]<int kWidth>() { launch_forward<T, kWidth>(ctx, args); });
  });
}

}  // namespace zerofleet::cuda
