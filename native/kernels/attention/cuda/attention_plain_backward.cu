// Attention in fp32 arithmetic, backward. P is made again from the scores and the forward's lse. F has the factors of
// dropout. D = rows of Σ dO · O:
//   dV = (P F)ᵀ dO,  dP = F (dO Vᵀ),  dS = P (dP − D) · scale,  dQ = dS K,  dK = dSᵀ Q.
// One kernel has tiles of keys and goes over the query heads that share them, and their query rows, in rising order. A
// second kernel has tiles of query rows and goes over their keys. The second kernel makes P and dP once more. These two
// of seven products are the cost of a fixed order of sums without atomic additions.
#include "kernels/attention/cuda/attention_launch.h"
#include "kernels/attention/cuda/attention_plain.cuh"
#include "kernels/common/cuda/launch_grid.cuh"

namespace zerofleet::cuda {
namespace {

/// A block of queries against a block of keys: the probabilities with dropout applied, and the gradients of the scores.
template <class T>
__device__ void plain_score_gradients(const AttentionBackwardCall<T>& a, std::int64_t batch, int head, int query,
                                      int key, PlainShared& shared, PlainSums& probs, PlainSums& dscores) {
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const int key_col = s.heads + kv_head_of(s, head);
  row_products(head_tile(c.qkv, s, batch, head, query), head_tile(c.qkv, s, batch, key_col, key), shared, probs);
  row_products(head_tile(a.dout, s, batch, head, query), head_tile(c.qkv, s, batch, key_col + s.kv_heads, key), shared,
               dscores);
  std::uint32_t kept = ~0U;
  if (c.drops) {
    kept = kept_bits<16>(c, [&](int e) {
      return ScoreIndex{row_index(s, batch, head, query + plain_row(e / 4)), key + plain_col(e % 4)};
    });
  }
  const float kept_factor = c.drops ? c.dropout.scale : 1.0F;
  ZF_DEVICE_UNROLL(4)
  for (int i = 0; i < 4; ++i) {
    const int position = query + plain_row(i);
    const bool inside = position < s.length;
    const std::int64_t row = row_index(s, batch, head, inside ? position : 0);
    const float lse = a.lse[row], delta = a.delta[row];
    const int first_key = c.mask.first_key(batch, position);
    ZF_DEVICE_UNROLL(4)
    for (int j = 0; j < 4; ++j) {
      const int at = key + plain_col(j);
      const bool visible = inside && at <= position && at >= first_key;
      const float score = c.score(probs[i][j]), p = visible ? expf(score - lse) : 0.0F;
      const float factor = (kept >> (4 * i + j) & 1U) != 0 ? kept_factor : 0.0F;
      dscores[i][j] = p * (dscores[i][j] * factor - delta) * c.slope(score);
      probs[i][j] = p * factor;
    }
  }
}

template <class T, int kChunks>
__global__ void __launch_bounds__(kPlainThreads)
    plain_key_kernel(const __grid_constant__ AttentionBackwardCall<T> a, int num_tiles) {
  __shared__ PlainShared shared;
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.kv_heads, kPlainTile, num_tiles, false);
  const int first_col = static_cast<int>(blockIdx.y) * kChunks * kPlainTile, group = s.heads / s.kv_heads;
  PlainSums dkeys[kChunks] = {}, dvalues[kChunks] = {};
  for (int head = tile.head * group; head < (tile.head + 1) * group; ++head) {
    for (int query = tile.first; query < s.length; query += kPlainTile) {
      if (c.mask.first_key(tile.batch, query) >= tile.first + kPlainTile) break;
      PlainSums probs, dscores;
      plain_score_gradients(a, tile.batch, head, query, tile.first, shared, probs, dscores);
      put_left(shared, probs);
      add_left_product<kChunks, true>(shared, head_tile(a.dout, s, tile.batch, head, query), first_col, dvalues);
      put_left(shared, dscores);
      add_left_product<kChunks, true>(shared, head_tile(c.qkv, s, tile.batch, head, query), first_col, dkeys);
    }
  }
  const int key_col = (s.heads + tile.head) * s.head_dim, rows = s.length - tile.first;
  const float ones[4] = {1, 1, 1, 1};
  T* dkey = a.dqkv.row(token_row(s, tile.batch, tile.first)) + key_col;
  store_plain(dkey, a.dqkv.stride, rows, s.head_dim, first_col, dkeys, ones);
  store_plain(dkey + static_cast<std::int64_t>(s.kv_heads) * s.head_dim, a.dqkv.stride, rows, s.head_dim, first_col,
              dvalues, ones);
}

template <class T, int kChunks>
__global__ void __launch_bounds__(kPlainThreads)
    plain_query_kernel(const __grid_constant__ AttentionBackwardCall<T> a, int num_tiles) {
  __shared__ PlainShared shared;
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.heads, kPlainTile, num_tiles, true);
  const int first_col = static_cast<int>(blockIdx.y) * kChunks * kPlainTile,
            key_col = s.heads + kv_head_of(s, tile.head);
  const int rows = s.length - tile.first, end = tile.first + (rows < kPlainTile ? rows : kPlainTile);
  PlainSums dqueries[kChunks] = {};
  for (int key = c.mask.first_key(tile.batch, tile.first) / kPlainTile * kPlainTile; key < end; key += kPlainTile) {
    PlainSums probs, dscores;
    plain_score_gradients(a, tile.batch, tile.head, tile.first, key, shared, probs, dscores);
    put_left(shared, dscores);
    add_left_product<kChunks, false>(shared, head_tile(c.qkv, s, tile.batch, key_col, key), first_col, dqueries);
  }
  const float ones[4] = {1, 1, 1, 1};
  T* dquery = a.dqkv.row(token_row(s, tile.batch, tile.first)) + static_cast<std::int64_t>(tile.head) * s.head_dim;
  store_plain(dquery, a.dqkv.stride, rows, s.head_dim, first_col, dqueries, ones);
}

}  // namespace

void plain_attention_backward(const Context& ctx, const AttentionBackward& args, const float* delta) {
  const Stream& stream = stream_of(ctx);
  const AttentionShape& shape = args.shape;
  const unsigned num_tiles = num_blocks_for(shape.sequence_length, kPlainTile);
  const bool narrow = shape.head_dim <= kPlainTile;
  const unsigned column_groups = num_blocks_across(shape.head_dim, narrow ? kPlainTile : 2 * kPlainTile);
  const dim3 keys(num_blocks_for(num_tiles * shape.batch * shape.num_kv_heads, 1), column_groups);
  const dim3 queries(num_blocks_for(num_tiles * shape.batch * shape.num_heads, 1), column_groups);
  with_element(args.qkv.dtype, [&]<class T>(T*) {
    const AttentionBackwardCall<T> call{attention_call<T>(shape, args.qkv, args.options), rows_of<T>(args.dout),
                                        rows_of<T>(args.dqkv), args.lse.data(), delta};
    const auto tiles = static_cast<int>(num_tiles);
    launch("attention_backward", stream, {keys, kPlainThreads},
           narrow ? plain_key_kernel<T, 1> : plain_key_kernel<T, 2>, call, tiles);
    launch("attention_backward", stream, {queries, kPlainThreads},
           narrow ? plain_query_kernel<T, 1> : plain_query_kernel<T, 2>, call, tiles);
  });
}

}  // namespace zerofleet::cuda
