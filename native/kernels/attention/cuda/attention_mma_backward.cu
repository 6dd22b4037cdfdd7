// Attention on tensor cores, backward; attention_plain_backward.cu has the formulas, and why there are two kernels.
//
// The kernel of keys has 64 keys a block and goes over query rows. It makes the scores transposed: a warp's 16 keys are
// the rows, so that Pᵀ and dSᵀ are left operands of Pᵀ dO and dSᵀ Q as they come, and dK and dV stay in the warp's
// registers. The kernel of queries has 64 query rows a block, 16 a warp, and goes over keys. P and dS are rounded to
// the storage type before they are multiplied; dS without the factor 1 / sqrt(head_dim), which dQ and dK get at the
// end: fp16 has no room to spare below.
//
// Four of the seven products are the first kernel's, three the second's. Shared memory: 256 rows at widths above 64
// (69632 bytes at 128), 384 rows up to 64 (55296 bytes at 64); two blocks fit on an A100's multiprocessor. Registers by
// nvcc 13.0, sm_80 / sm_90, of the kernel of keys: 185 / 186 at width 64, 168 / 168 at 80, 172 / 175 at 96, 236 / 240
// at 128; of the kernel of queries 166 / 166, 128 / 128, 127 / 126, 167 / 167. Nothing is spilled. None of this was
// measured.
#include "kernels/attention/cuda/attention_launch.h"
#include "kernels/attention/cuda/attention_mma.cuh"

namespace zerofleet::cuda {
namespace {

constexpr int kBackwardWarps = 4, kBackwardThreads = 32 * kBackwardWarps;
constexpr int kOwnRows = 16 * kBackwardWarps;  // keys or query rows of a block

/// Rows of the other side at once: fewer where the sums of wide heads leave few registers.
template <int kWidth>
inline constexpr int kOtherRows = kWidth > 64 ? 32 : 64;

/// Tiles in shared memory: two of the block's own rows, and two that it goes over, twice: while it works on one pair
/// the next is in transit.
template <class T, int kWidth>
struct BackwardTiles {
  static constexpr std::size_t kBytes = tile_bytes<T, kWidth>(2 * kOwnRows + 4 * kOtherRows<kWidth>);

  __device__ static T* own(int which) { return dynamic_shared<T>() + which * kOwnRows * kPitch<kWidth>; }
  __device__ static T* other(int stage, int which) {
    return dynamic_shared<T>() + (2 * kOwnRows + (2 * stage + which) * kOtherRows<kWidth>)*kPitch<kWidth>;
  }
  __device__ static void load_own(int which, const HeadTile<T>& from, bool aligned) {
    load_tile<kWidth, kOwnRows, kBackwardThreads>(own(which), from, aligned);
  }
  __device__ static void load_other(int stage, int which, const HeadTile<T>& from, bool aligned) {
    load_tile<kWidth, kOtherRows<kWidth>, kBackwardThreads>(other(stage, which), from, aligned);
  }
};

/// Scores of a fragment that are visible and kept, as bits 4n + i: a word each.
struct ScoreBits {
  std::uint32_t visible = ~0U, kept = ~0U;
};

__device__ inline bool bit(std::uint32_t bits, int n, int i) { return (bits >> (4 * n + i) & 1U) != 0; }

/// From products q · k and dO · v to P with dropout's zeros in `products`, and dS less its factor in `dprobs`. `lse`
/// (in units of log2) and `delta` are functions of (n, i).
template <int kCols, class Lse, class Delta>
__device__ void mma_score_gradients(float log2_scale, float kept_factor, const ScoreBits& bits, const Lse& lse,
                                    const Delta& delta, FragmentC (&products)[1][kCols / 8],
                                    FragmentC (&dprobs)[1][kCols / 8]) {
  ZF_DEVICE_UNROLL(kCols / 8)
  for (int n = 0; n < kCols / 8; ++n) {
    ZF_DEVICE_UNROLL(4)
    for (int i = 0; i < 4; ++i) {
      float &p = products[0][n].v[i], &d = dprobs[0][n].v[i];
      const float prob = bit(bits.visible, n, i) ? fast_exp2(fmaf(p, log2_scale, -lse(n, i))) : 0.0F;
      const bool kept = bit(bits.kept, n, i);
      d = prob * ((kept ? d * kept_factor : 0.0F) - delta(n, i));
      p = kept ? prob : 0.0F;
    }
  }
}

/// State of the current query rows in the kernel of keys.
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

/// Handles a warp's keys from `key` on against the query rows from `query` on.
template <int kRows, class T>
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
  if (c.drops) {
    bits.kept = kept_bits<kRows / 2>(c, [&](int e) {
      return ScorePlace{row_index(c.sizes, batch, head, query + fragment_col(e / 4, e % 4)),
                        key + fragment_row(0, e % 4)};
    });
  }
  return bits;
}

/// A step of the kernel of keys: query rows of one head.
struct Step {
  int head, query;
};

template <int kQueries>
__device__ Step step_after(const AttentionMask& mask, const AttentionTile& tile, const Step& step) {
  const int query = step.query + kQueries;
  const bool ends = query >= mask.length || mask.first_key(tile.batch, query) >= tile.first + kOwnRows;
  return ends ? Step{step.head + 1, tile.first} : Step{step.head, query};
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kBackwardThreads)
    mma_key_kernel(const __grid_constant__ AttentionBackwardCall<T> a, int num_tiles, bool aligned) {
  using Shared = BackwardTiles<T, kWidth>;
  constexpr int kQueries = kOtherRows<kWidth>;
  __shared__ QueryRows<kQueries> rows[2];
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.kv_heads, kOwnRows, num_tiles, false);
  const int own_row = static_cast<int>(threadIdx.x) / 32 * 16, key = tile.first + own_row, group = s.heads / s.kv_heads;
  const int key_col = s.heads + tile.head, value_col = key_col + s.kv_heads, end_head = (tile.head + 1) * group;
  T *own_keys = Shared::own(0) + own_row * kPitch<kWidth>, *own_values = Shared::own(1) + own_row * kPitch<kWidth>;
  const float kept_factor = c.drops ? c.dropout.scale : 1.0F;
  const auto load = [&](int stage, const Step& at) {
    Shared::load_other(stage, 0, head_tile(c.qkv, s, tile.batch, at.head, at.query), aligned);
    Shared::load_other(stage, 1, head_tile(a.dout, s, tile.batch, at.head, at.query), aligned);
    load_query_rows(rows[stage], a, tile.batch, at.head, at.query);
  };
  FragmentC dkeys[1][kWidth / 8] = {}, dvalues[1][kWidth / 8] = {};
  Step step{tile.head * group, tile.first};
  Shared::load_own(0, head_tile(c.qkv, s, tile.batch, key_col, tile.first), aligned);
  Shared::load_own(1, head_tile(c.qkv, s, tile.batch, value_col, tile.first), aligned);
  load(0, step);
  for (int stage = 0; step.head < end_head; stage = 1 - stage) {
    const Step at = step;
    step = step_after<kQueries>(c.mask, tile, at);
    wait_for_copies();
    __syncthreads();  // this stage is there; the other one is no longer read
    if (step.head < end_head) load(1 - stage, step);
    if (key >= at.query + kQueries || key >= s.length) continue;  // no query of the tile sees this warp's keys
    const T *queries = Shared::other(stage, 0), *dout = Shared::other(stage, 1);
    FragmentC probs[1][kQueries / 8], dscores[1][kQueries / 8];
    row_products<T, kWidth>(probs, own_keys, queries);
    row_products<T, kWidth>(dscores, own_values, dout);
    const ScoreBits bits = key_bits(c, rows[stage], tile.batch, at.head, at.query, key);
    mma_score_gradients<kQueries>(
        c.scale * kLog2E, kept_factor, bits, [&](int n, int i) { return rows[stage].lse[fragment_col(n, i)]; },
        [&](int n, int i) { return rows[stage].delta[fragment_col(n, i)]; }, probs, dscores);
    add_product<T, kWidth>(dvalues, probs, dout);
    add_product<T, kWidth>(dkeys, dscores, queries);
  }
  const float key_factor[1][2] = {{c.scale, c.scale}}, value_factor[1][2] = {{kept_factor, kept_factor}};
  T* dkey = a.dqkv.row(token_row(s, tile.batch, key)) + static_cast<std::int64_t>(key_col) * s.head_dim;
  T* dvalue = a.dqkv.row(token_row(s, tile.batch, key)) + static_cast<std::int64_t>(value_col) * s.head_dim;
  store_rows<T, kWidth>(own_keys, dkeys, key_factor, dkey, a.dqkv.stride, s.length - key, s.head_dim, aligned);
  store_rows<T, kWidth>(own_values, dvalues, value_factor, dvalue, a.dqkv.stride, s.length - key, s.head_dim, aligned);
}

/// Handles a warp's query rows from `query` on against the keys from `key` on.
template <int kKeys, class T>
__device__ ScoreBits query_bits(const AttentionCall<T>& c, std::int64_t batch, int head, int query, int key,
                                const int (&first_key)[2], int last_first_key) {
  ScoreBits bits;
  if (key + kKeys - 1 > query || last_first_key > key) {
    bits.visible = 0;
    ZF_DEVICE_UNROLL(kKeys / 8)
    for (int n = 0; n < kKeys / 8; ++n) {
      ZF_DEVICE_UNROLL(4)
      for (int i = 0; i < 4; ++i) {
        const int at = key + fragment_col(n, i);
        bits.visible |= (at <= query + fragment_row(0, i) && at >= first_key[i / 2] ? 1U : 0U) << (4 * n + i);
      }
    }
  }
  if (c.drops) {
    bits.kept = kept_bits<kKeys / 2>(c, [&](int e) {
      return ScorePlace{row_index(c.sizes, batch, head, query + fragment_row(0, e % 4)),
                        key + fragment_col(e / 4, e % 4)};
    });
  }
  return bits;
}

template <class T, int kWidth>
__global__ void __launch_bounds__(kBackwardThreads)
    mma_query_kernel(const __grid_constant__ AttentionBackwardCall<T> a, int num_tiles, bool aligned) {
  using Shared = BackwardTiles<T, kWidth>;
  constexpr int kKeys = kOtherRows<kWidth>;
  const AttentionCall<T>& c = a.call;
  const AttentionSizes& s = c.sizes;
  const AttentionTile tile = tile_of_block(s.batch, s.heads, kOwnRows, num_tiles, true);
  const int own_row = static_cast<int>(threadIdx.x) / 32 * 16, query = tile.first + own_row;
  const int key_col = s.heads + kv_head_of(s, tile.head), value_col = key_col + s.kv_heads;
  T *own_queries = Shared::own(0) + own_row * kPitch<kWidth>, *own_dout = Shared::own(1) + own_row * kPitch<kWidth>;
  const auto load = [&](int stage, int key) {
    Shared::load_other(stage, 0, head_tile(c.qkv, s, tile.batch, key_col, key), aligned);
    Shared::load_other(stage, 1, head_tile(c.qkv, s, tile.batch, value_col, key), aligned);
  };
  int key = c.mask.first_key(tile.batch, tile.first) / kOwnRows * kOwnRows;
  Shared::load_own(0, head_tile(c.qkv, s, tile.batch, tile.head, tile.first), aligned);
  Shared::load_own(1, head_tile(a.dout, s, tile.batch, tile.head, tile.first), aligned);
  load(0, key);
  float lse[2], delta[2];
  int first_key[2];
  for (int half = 0; half < 2; ++half) {
    const int place = query + fragment_row(0, 2 * half);
    const bool inside = place < s.length;
    const std::int64_t row = row_index(s, tile.batch, tile.head, inside ? place : 0);
    lse[half] = inside ? a.lse[row] * kLog2E : INFINITY;  // probabilities are 0 there
    delta[half] = inside ? a.delta[row] : 0.0F;
    first_key[half] = c.mask.first_key(tile.batch, place);
  }
  const int last_first_key = c.mask.first_key(tile.batch, query + 15);
  const float kept_factor = c.drops ? c.dropout.scale : 1.0F;
  FragmentC dqueries[1][kWidth / 8] = {};
  const int end = s.length - tile.first < kOwnRows ? s.length : tile.first + kOwnRows;
  for (int stage = 0; key < end; stage = 1 - stage, key += kKeys) {
    wait_for_copies();
    __syncthreads();  // this stage is there; the other one is no longer read
    if (key + kKeys < end) load(1 - stage, key + kKeys);
    if (key >= query + 16 || query >= s.length) continue;  // this warp sees none of them
    FragmentC probs[1][kKeys / 8], dscores[1][kKeys / 8];
    row_products<T, kWidth>(probs, own_queries, Shared::other(stage, 0));
    row_products<T, kWidth>(dscores, own_dout, Shared::other(stage, 1));
    const ScoreBits bits = query_bits<kKeys>(c, tile.batch, tile.head, query, key, first_key, last_first_key);
    mma_score_gradients<kKeys>(
        c.scale * kLog2E, kept_factor, bits, [&](int, int i) { return lse[i / 2]; },
        [&](int, int i) { return delta[i / 2]; }, probs, dscores);
    add_product<T, kWidth>(dqueries, dscores, Shared::other(stage, 0));
  }
  const float factor[1][2] = {{c.scale, c.scale}};
  T* dquery = a.dqkv.row(token_row(s, tile.batch, query)) + static_cast<std::int64_t>(tile.head) * s.head_dim;
  store_rows<T, kWidth>(own_queries, dqueries, factor, dquery, a.dqkv.stride, s.length - query, s.head_dim, aligned);
}

template <class T, int kWidth>
void launch_backward(const Context& ctx, const AttentionBackward& args, const float* delta) {
  const char* name = "attention_backward";
  const Stream& stream = stream_of(ctx);
  const AttentionShape& shape = args.shape;
  const AttentionBackwardCall<T> call{attention_call<T>(shape, args.qkv, args.options), rows_of<T>(args.dout),
                                      rows_of<T>(args.dqkv), args.lse.data(), delta};
  const unsigned num_tiles = num_blocks_for(shape.sequence_length, kOwnRows);
  const unsigned keys = num_blocks_for(num_tiles * shape.batch * shape.num_kv_heads, 1);
  const unsigned queries = num_blocks_for(num_tiles * shape.batch * shape.num_heads, 1);
  const bool aligned = in_pieces(shape, {args.qkv, args.dout, args.dqkv});
  constexpr std::size_t kBytes = BackwardTiles<T, kWidth>::kBytes;
  allow_dynamic_shared(mma_key_kernel<T, kWidth>, kBytes, name);
  allow_dynamic_shared(mma_query_kernel<T, kWidth>, kBytes, name);
  launch(name, stream, {keys, kBackwardThreads, kBytes}, mma_key_kernel<T, kWidth>, call, static_cast<int>(num_tiles),
         aligned);
  launch(name, stream, {queries, kBackwardThreads, kBytes}, mma_query_kernel<T, kWidth>, call,
         static_cast<int>(num_tiles), aligned);
}

}  // namespace

void mma_attention_backward(const Context& ctx, const AttentionBackward& args, const float* delta) {
  with_half(args.qkv.dtype, [&]<class T>(T*) {
    with_width(args.shape.head_dim, [&]<int kWidth>() { launch_backward<T, kWidth>(ctx, args, delta); });
  });
}

}  // namespace zerofleet::cuda
