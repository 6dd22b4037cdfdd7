// Attention on tensor cores, backward; attention_plain_backward.cu has the formulas, and why there are two kernels.
//
// The kernel of keys has some keys a block and goes over query rows. It makes the scores transposed: a warp's keys are
// the rows. So Pᵀ and dSᵀ are left operands of Pᵀ dO and dSᵀ Q as they come, and dK and dV stay in the warp's
// registers. The kernel of queries has query rows and goes over keys. P and dS are rounded to the storage type before
// they are multiplied. The factor 1 / sqrt(head_dim) is not in dS then: fp16 has no room to spare below. Instead dQ and
// dK get this factor at the end. Four of the seven products are the first kernel's, three the second's.
//
// A warp has 32 rows of its own where registers allow: then each piece of the other side that it reads from shared
// memory serves two products. A multiprocessor of an H100 makes one product of 16 × 8 × 16 in a cycle at best, while it
// reads 128 bytes. Bytes that a warp reads for such a product, with 16 rows in brackets:
//
//   width               64         80         96, 128
//   kernel of keys      192 (288)  256 (320)  (320)
//   kernel of queries   171 (299)  213 (341)  213 (341)
//
// At 96 and 128 dK and dV of 32 rows have no room in the kernel of keys. With dropout warps have 16 rows: its random
// numbers need registers. A row's bits do not depend on the number of rows.
//
// Registers by nvcc 13.0 for sm_90 at widths 64 and 128: keys 255 and 238, queries 255 and 255; none is spilled. Shared
// memory: 55,296 and 69,632 bytes, 73,728 and 104,448. So a multiprocessor has two blocks, an A100's one of queries at
// 128. None of this was measured.
#include <utility>

#include "kernels/attention/cuda/attention_launch.h"
#include "kernels/attention/cuda/attention_mma_tiles.cuh"

namespace zerofleet::cuda {
namespace {

/// Handles 16 keys from `key` on against the query rows from `query` on.
template <bool kDrops, int kRows, class T>
__device__ ScoreBits key_bits(const AttentionCall<T>& c, const QueryRows<kRows>& rows, std::int64_t batch, int head,
                              int query, int key) {
  ScoreBits bits;
  if (key + 15 > query || rows.first_key[kRows - 1] > key) {
    bits.visible = 0;
    ZF_DEVICE_UNROLL(kRows / 8)
    for (int n = 0; n < kRows / 8; ++n) {
      ZF_DEVICE_UNROLL(4)
      for (int i = 0; i < 4; ++i) {
        const int at = key + fragment_row(0, i), col = fragment_col(n, i);
        bits.visible |= (at <= query + col && at >= rows.first_key[col] ? 1U : 0U) << (4 * n + i);
      }
    }
  }
  if constexpr (kDrops) {
    bits.kept = kept_bits<kRows / 2>(c, [&](int e) {
      return ScoreIndex{row_index(c.sizes, batch, head, query + fragment_col(e / 4, e % 4)),
                        key + fragment_row(0, e % 4)};
    });
  }
  return bits;
}

/// A step of the kernel of keys: query rows of one head.
struct Step {
  int head, query;
};

template <class Rows>
__device__ Step step_after(const AttentionMask& mask, const AttentionTile& tile, const Step& step) {
  const int query = step.query + Rows::kOther;
  const bool ends = query >= mask.length || mask.first_key(tile.batch, query) >= tile.first + Rows::kOwn;
  return ends ? Step{step.head + 1, tile.first} : Step{step.head, query};
}

template <class T, int kWidth, bool kDrops>
__global__ void __launch_bounds__(kBackwardThreads, 2)
    mma_key_kernel(const __grid_constant__ AttentionBackwardCall<T> a, int num_tiles, bool aligned) {
  using Rows = KeyRows<kWidth, kDrops>;
  using Shared = BackwardTiles<T, kWidth, Rows>;
  constexpr int kTiles = Rows::kTiles, kQueries = Rows::kOther;
  __shared__ QueryRows<kQueries> rows[2];
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.kv_heads, Rows::kOwn, num_tiles, false);
  const int own_row = static_cast<int>(threadIdx.x) / 32 * Rows::kWarp, key = tile.first + own_row,
            group = s.heads / s.kv_heads;
  const int key_col = s.heads + tile.head, value_col = key_col + s.kv_heads, end_head = (tile.head + 1) * group;
  T *own_keys = Shared::own(0) + own_row * kPitch<kWidth>, *own_values = Shared::own(1) + own_row * kPitch<kWidth>;
  const float kept_factor = kDrops ? c.dropout.scale : 1.0F;
  const auto load = [&](int stage, const Step& at) {
    Shared::load_other(stage, 0, head_tile(c.qkv, s, tile.batch, at.head, at.query), aligned);
    Shared::load_other(stage, 1, head_tile(a.dout, s, tile.batch, at.head, at.query), aligned);
    load_query_rows(rows[stage], a, tile.batch, at.head, at.query);
  };
  FragmentC dkeys[kTiles][kWidth / 8] = {}, dvalues[kTiles][kWidth / 8] = {};
  Step step{tile.head * group, tile.first};
  Shared::load_own(0, head_tile(c.qkv, s, tile.batch, key_col, tile.first), aligned);
  Shared::load_own(1, head_tile(c.qkv, s, tile.batch, value_col, tile.first), aligned);
  load(0, step);
  for (int stage = 0; step.head < end_head; stage = 1 - stage) {
    const Step at = step;
    step = step_after<Rows>(c.mask, tile, at);
    wait_for_copies();
    __syncthreads();  // this stage is there; the other one is no longer read
    if (step.head < end_head) load(1 - stage, step);
    if (key >= at.query + kQueries || key >= s.length) continue;  // no query of the tile sees this warp's keys
    const T *queries = Shared::other(stage, 0), *dout = Shared::other(stage, 1);
    FragmentC probs[kTiles][kQueries / 8], dscores[kTiles][kQueries / 8];
    row_products<T, kWidth>(probs, own_keys, queries);
    row_products<T, kWidth>(dscores, own_values, dout);
    ZF_DEVICE_UNROLL(kTiles)
    for (int r = 0; r < kTiles; ++r) {
      const float* delta = rows[not_hoisted(stage)].delta;  // read anew for each r: registers are short
      const ScoreBits bits = key_bits<kDrops>(c, rows[stage], tile.batch, at.head, at.query, key + 16 * r);
      mma_score_gradients<kQueries>(
          c.scale * kLog2E, kept_factor, bits, [&](int n, int i) { return rows[stage].lse[fragment_col(n, i)]; },
          [&](int n, int i) { return delta[fragment_col(n, i)]; }, probs[r], dscores[r]);
    }
    add_product<T, kWidth>(dvalues, probs, dout);
    add_product<T, kWidth>(dkeys, dscores, queries);
  }
  float key_factor[kTiles][2], value_factor[kTiles][2];
  fill_factors(key_factor, c.scale);
  fill_factors(value_factor, kept_factor);
  T* dkey = a.dqkv.row(token_row(s, tile.batch, key)) + static_cast<std::int64_t>(key_col) * s.head_dim;
  T* dvalue = a.dqkv.row(token_row(s, tile.batch, key)) + static_cast<std::int64_t>(value_col) * s.head_dim;
  store_rows<T, kWidth>(own_keys, dkeys, key_factor, dkey, a.dqkv.stride, s.length - key, s.head_dim, aligned);
  store_rows<T, kWidth>(own_values, dvalues, value_factor, dvalue, a.dqkv.stride, s.length - key, s.head_dim, aligned);
}

/// Handles the 16 query rows from `query` on, which begin at `row` of `rows`, against the keys from `key` on.
template <bool kDrops, int kKeys, int kRows, class T>
__device__ ScoreBits query_bits(const AttentionCall<T>& c, const QueryRows<kRows>& rows, int row, std::int64_t batch,
                                int head, int query, int key) {
  ScoreBits bits;
  if (key + kKeys - 1 > query || rows.first_key[row + 15] > key) {
    bits.visible = 0;
    ZF_DEVICE_UNROLL(kKeys / 8)
    for (int n = 0; n < kKeys / 8; ++n) {
      ZF_DEVICE_UNROLL(4)
      for (int i = 0; i < 4; ++i) {
        const int at = key + fragment_col(n, i);
        const int position = fragment_row(0, i);
        bits.visible |= (at <= query + position && at >= rows.first_key[row + position] ? 1U : 0U) << (4 * n + i);
      }
    }
  }
  if constexpr (kDrops) {
    bits.kept = kept_bits<kKeys / 2>(c, [&](int e) {
      return ScoreIndex{row_index(c.sizes, batch, head, query + fragment_row(0, e % 4)),
                        key + fragment_col(e / 4, e % 4)};
    });
  }
  return bits;
}

template <class T, int kWidth, bool kDrops>
__global__ void __launch_bounds__(kBackwardThreads, kDrops ? 3 : 2)
    mma_query_kernel(const __grid_constant__ AttentionBackwardCall<T> a, int num_tiles, bool aligned) {
  using Rows = QueryBlockRows<kWidth, kDrops>;
  using Shared = BackwardTiles<T, kWidth, Rows>;
  constexpr int kTiles = Rows::kTiles, kKeys = Rows::kOther;
  __shared__ QueryRows<Rows::kOwn> rows;
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.heads, Rows::kOwn, num_tiles, true);
  const int own_row = static_cast<int>(threadIdx.x) / 32 * Rows::kWarp, query = tile.first + own_row;
  const int key_col = s.heads + kv_head_of(s, tile.head), value_col = key_col + s.kv_heads;
  T *own_queries = Shared::own(0) + own_row * kPitch<kWidth>, *own_dout = Shared::own(1) + own_row * kPitch<kWidth>;
  const auto load = [&](int stage, int key) {
    Shared::load_other(stage, 0, head_tile(c.qkv, s, tile.batch, key_col, key), aligned);
    Shared::load_other(stage, 1, head_tile(c.qkv, s, tile.batch, value_col, key), aligned);
  };
  int key = c.mask.first_key(tile.batch, tile.first) / kKeys * kKeys;
  Shared::load_own(0, head_tile(c.qkv, s, tile.batch, tile.head, tile.first), aligned);
  Shared::load_own(1, head_tile(a.dout, s, tile.batch, tile.head, tile.first), aligned);
  load(0, key);
  load_query_rows(rows, a, tile.batch, tile.head, tile.first);
  const float kept_factor = kDrops ? c.dropout.scale : 1.0F;
  FragmentC dqueries[kTiles][kWidth / 8] = {};
  const int end = s.length - tile.first < Rows::kOwn ? s.length : tile.first + Rows::kOwn;
  for (int stage = 0; key < end; stage = 1 - stage, key += kKeys) {
    wait_for_copies();
    __syncthreads();  // this stage is there; the other one is no longer read
    if (key + kKeys < end) load(1 - stage, key + kKeys);
    if (key >= query + Rows::kWarp || query >= s.length) continue;  // this warp sees none of them
    FragmentC probs[kTiles][kKeys / 8], dscores[kTiles][kKeys / 8];
    row_products<T, kWidth>(probs, own_queries, Shared::other(stage, 0));
    row_products<T, kWidth>(dscores, own_dout, Shared::other(stage, 1));
    ZF_DEVICE_UNROLL(kTiles)
    for (int r = 0; r < kTiles; ++r) {
      const int row = own_row + 16 * r;
      const ScoreBits bits = query_bits<kDrops, kKeys>(c, rows, row, tile.batch, tile.head, tile.first + row, key);
      mma_score_gradients<kKeys>(
          c.scale * kLog2E, kept_factor, bits, [&](int, int i) { return rows.lse[row + fragment_row(0, i)]; },
          [&](int, int i) { return rows.delta[row + fragment_row(0, i)]; }, probs[r], dscores[r]);
    }
    add_product<T, kWidth>(dqueries, dscores, Shared::other(stage, 0));
  }
  float factor[kTiles][2];
  fill_factors(factor, c.scale);
  T* dquery = a.dqkv.row(token_row(s, tile.batch, query)) + static_cast<std::int64_t>(tile.head) * s.head_dim;
  store_rows<T, kWidth>(own_queries, dqueries, factor, dquery, a.dqkv.stride, s.length - query, s.head_dim, aligned);
}

template <class T, int kWidth, bool kDrops>
void launch_backward(const Context& ctx, const AttentionBackward& args, const float* delta) {
  const char* name = "attention_backward";
  const Stream& stream = stream_of(ctx);
  const AttentionShape& shape = args.shape;
  const AttentionBackwardCall<T> call{attention_call<T>(shape, args.qkv, args.options), rows_of<T>(args.dout),
                                      rows_of<T>(args.dqkv), args.lse.data(), delta};
  const auto blocks = [&](int rows, std::int64_t heads) {
    const unsigned num_tiles = num_blocks_for(shape.sequence_length, rows);
    return std::pair(num_tiles, num_blocks_for(num_tiles * shape.batch * heads, 1));
  };
  using Keys = KeyRows<kWidth, kDrops>;
  using Queries = QueryBlockRows<kWidth, kDrops>;
  const auto [key_tiles, keys] = blocks(Keys::kOwn, shape.num_kv_heads);
  const auto [query_tiles, queries] = blocks(Queries::kOwn, shape.num_heads);
  const bool aligned = in_pieces(shape, {args.qkv, args.dout, args.dqkv});
  constexpr std::size_t kKeyBytes = BackwardTiles<T, kWidth, Keys>::kBytes;
  constexpr std::size_t kQueryBytes = BackwardTiles<T, kWidth, Queries>::kBytes;
  allow_dynamic_shared<mma_key_kernel<T, kWidth, kDrops>, kKeyBytes>(name);
  allow_dynamic_shared<mma_query_kernel<T, kWidth, kDrops>, kQueryBytes>(name);
  launch(name, stream, {keys, kBackwardThreads, kKeyBytes}, mma_key_kernel<T, kWidth, kDrops>, call,
         static_cast<int>(key_tiles), aligned);
  launch(name, stream, {queries, kBackwardThreads, kQueryBytes}, mma_query_kernel<T, kWidth, kDrops>, call,
         static_cast<int>(query_tiles), aligned);
}

}  // namespace

void mma_attention_backward(const Context& ctx, const AttentionBackward& args, const float* delta) {
  with_half(args.qkv.dtype, [&]<class T>(T*) {
    with_width(args.shape.head_dim, [&]<int kWidth>() {
      if (args.options.dropout > 0) return launch_backward<T, kWidth, true>(ctx, args, delta);
      launch_backward<T, kWidth, false>(ctx, args, delta);
    });
  });
}

}  // namespace zerofleet::cuda
