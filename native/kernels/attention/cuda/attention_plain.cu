// Attention in fp32 arithmetic, forward. A block of 256 threads has 64 query rows of one head and up to 128 columns of
// its results. Wider heads take several blocks, each of which makes the scores again. Over blocks of 64 keys, with m
// the largest score so far: P = exp(S − m), sums = sums · exp(m before − m) + P V, total likewise; out = sums / total.
#include "kernels/attention/cuda/attention_launch.h"
#include "kernels/attention/cuda/attention_plain.cuh"
#include "kernels/common/cuda/launch_grid.cuh"

namespace zerofleet::cuda {
namespace {

/// A thread's state of its four rows.
struct PlainRowState {
  float top[4], total[4];
  int first_key[4];
};

/// Scores of a block of keys become probabilities, relative to the largest score so far; the sums of a row are rescaled
/// to it.
template <int kChunks, class T>
__device__ void plain_softmax_step(const AttentionCall<T>& c, const AttentionTile& tile, int key, PlainSums& scores,
                                   PlainRowState& rows, PlainSums (&sums)[kChunks]) {
  std::uint32_t kept = ~0U;
  if (c.drops) {
    kept = kept_bits<16>(c, [&](int e) {
      return ScoreIndex{row_index(c.sizes, tile.batch, tile.head, tile.first + plain_row(e / 4)),
                        key + plain_col(e % 4)};
    });
  }
  ZF_DEVICE_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    const int query = tile.first + plain_row(i);
    float largest = -INFINITY;
    ZF_DEVICE_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const int at = key + plain_col(j);
      const bool visible = at <= query && at >= rows.first_key[i];
      scores[i][j] = visible ? c.score(scores[i][j]) : -INFINITY;
      largest = fmaxf(largest, scores[i][j]);
    }
    const float before = rows.top[i], top = fmaxf(before, plain_row_max(largest));
    const float reference = top == -INFINITY ? 0.0F : top;  // no key seen yet: all of it is zero
    float total = 0;
    ZF_DEVICE_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      scores[i][j] = expf(scores[i][j] - reference);
      total = total + scores[i][j];
      if ((kept >> (4 * i + j) & 1U) == 0) scores[i][j] = 0;
    }
    const float factor = before == top ? 1.0F : expf(before - top);
    rows.top[i] = top;
    rows.total[i] = fmaf(rows.total[i], factor, plain_row_sum(total));
    ZF_DEVICE_UNROLL(kChunks)
    for (int chunk = 0; chunk < kChunks; ++chunk) {
      ZF_DEVICE_UNROLL(4)
      for (int j = 0; j < 4; ++j) sums[chunk][i][j] = sums[chunk][i][j] * factor;
    }
  }
}

template <class T, int kChunks>
__global__ void __launch_bounds__(kPlainThreads)
    plain_forward_kernel(const __grid_constant__ AttentionForwardCall<T> a, int num_tiles) {
  __shared__ PlainShared shared;
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.heads, kPlainTile, num_tiles, true);
  const int first_col = static_cast<int>(blockIdx.y) * kChunks * kPlainTile;
  const int key_col = s.heads + kv_head_of(s, tile.head), value_col = key_col + s.kv_heads;
  const HeadTile<T> queries = head_tile(c.qkv, s, tile.batch, tile.head, tile.first);
  PlainRowState rows;
  for (int i = 0; i < 4; ++i) {
    rows.top[i] = -INFINITY;
    rows.total[i] = 0;
    rows.first_key[i] = c.mask.first_key(tile.batch, tile.first + plain_row(i));
  }
  PlainSums sums[kChunks] = {};
  const int end = tile.first + (queries.rows < kPlainTile ? queries.rows : kPlainTile);
  for (int key = c.mask.first_key(tile.batch, tile.first) / kPlainTile * kPlainTile; key < end; key += kPlainTile) {
    PlainSums scores;
    row_products(queries, head_tile(c.qkv, s, tile.batch, key_col, key), shared, scores);
    plain_softmax_step(c, tile, key, scores, rows, sums);
    put_left(shared, scores);
    add_left_product<kChunks, false>(shared, head_tile(c.qkv, s, tile.batch, value_col, key), first_col, sums);
  }
  float factor[4];
  for (int i = 0; i < 4; ++i) factor[i] = (c.drops ? c.dropout.scale : 1.0F) / rows.total[i];
  T* out = a.out.row(token_row(s, tile.batch, tile.first)) + static_cast<std::int64_t>(tile.head) * s.head_dim;
  store_plain(out, a.out.stride, queries.rows, s.head_dim, first_col, sums, factor);
  if (blockIdx.y != 0 || plain_col(0) != 0) return;
  for (int i = 0; i < 4; ++i) {
    if (plain_row(i) >= queries.rows) continue;
    a.lse[row_index(s, tile.batch, tile.head, tile.first + plain_row(i))] = rows.top[i] + logf(rows.total[i]);
  }
}

}  // namespace

void plain_attention(const Context& ctx, const AttentionForward& args) {
  const Stream& stream = stream_of(ctx);
  const AttentionShape& shape = args.shape;
  const unsigned num_tiles = num_blocks_for(shape.sequence_length, kPlainTile);
  const unsigned blocks = num_blocks_for(num_tiles * shape.batch * shape.num_heads, 1);
  const bool narrow = shape.head_dim <= kPlainTile;
  const dim3 grid(blocks, num_blocks_across(shape.head_dim, narrow ? kPlainTile : 2 * kPlainTile));
  with_element(args.qkv.dtype, [&]<class T>(T*) {
    const AttentionForwardCall<T> call{attention_call<T>(shape, args.qkv, args.options), rows_of<T>(args.out),
                                       args.lse.data()};
    launch("attention", stream, {grid, kPlainThreads}, narrow ? plain_forward_kernel<T, 1> : plain_forward_kernel<T, 2>,
           call, static_cast<int>(num_tiles));
  });
}

}  // namespace zerofleet::cuda
