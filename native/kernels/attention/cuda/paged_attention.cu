// Attention of new tokens over the KV cache. A block computes one query and head, tile by tile of its keys, relative to
// the largest score so far. Tiles begin at the first key that the query sees, so its result depends on nothing else. A
// page has kPageTokens rows of all key/value heads.
#include <cmath>

#include "core/device/context.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/paged_attention.h"
#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/block_sum.cuh"
#include "kernels/common/cuda/dynamic_shared.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/common/formulas/soft_cap.h"

namespace zerofleet::cuda {
namespace {

constexpr int kKeyTile = kRowThreads;  // keys
constexpr int kQueryWarps = kRowThreads / 32;
constexpr int kElements = 4;  // elements of an access
// Finite, so that infinity is never subtracted from itself.
constexpr float kLowestScore = -3.402823466e+38F;

template <class T>
struct QueryArguments {
  Rows<const T> qkv;
  Rows<T> keys, values;  // (num_pages · kPageTokens, num_kv_heads · head_dim)
  Rows<T> out;
  const std::int32_t *positions, *tables, *pages;
  std::int64_t head_dim, heads_per_key, query_size, window;
  float scale, soft_cap;
  bool aligned;  // queries and keys

  /// Row of a token's keys and values.
  __device__ std::int64_t slot(const std::int32_t* table, std::int64_t position) const {
    return table[position / kPageTokens] * kPageTokens + position % kPageTokens;
  }
};

/// The largest value of a block's threads; every thread has it. As block_sum().
__device__ float block_max(float value, float (&parts)[kQueryWarps]) {
  for (int half = 16; half >= 1; half /= 2) value = fmaxf(value, __shfl_xor_sync(kWholeWarp, value, half));
  __syncthreads();
  if (lane_of_warp() == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  for (int warp = 0; warp < kQueryWarps; ++warp) value = fmaxf(value, parts[warp]);
  return value;
}

/// query · key, in all lanes of a warp.
template <class T>
__device__ float product(const T* query, const T* key, std::int64_t head_dim, bool aligned) {
  float sum = 0;
  for (std::int64_t i = lane_of_warp() * kElements; i < head_dim; i += 32 * kElements) {
    const auto at = columns_from<kElements>(i, head_dim, aligned);
    const Lanes<kElements> q = load(query, at), k = load(key, at);
#pragma unroll
    for (int j = 0; j < kElements; ++j) sum = fmaf(q.v[j], k.v[j], sum);
  }
  return warp_sum(sum);
}

/// Keys and values of a new token into its page; blockIdx.x: row.
template <class T>
__global__ void __launch_bounds__(kRowThreads) append_kernel(const QueryArguments<T> a, std::int64_t cols) {
  const std::int64_t row = blockIdx.x, slot = a.slot(a.pages + a.tables[row], a.positions[row]);
  const T* keys = a.qkv.row(row) + a.query_size;
  for (std::int64_t i = threadIdx.x; i < cols; i += kRowThreads) {
    a.keys.row(slot)[i] = keys[i];
    a.values.row(slot)[i] = keys[cols + i];
  }
}

/// The attention of one query and head: blockIdx.x: row; blockIdx.y: head. Room for 5 blocks on a multiprocessor: with
/// 6, which the compiler would choose, registers spill.
template <class T>
__global__ void __launch_bounds__(kRowThreads, 5) query_kernel(const QueryArguments<T> a) {
  __shared__ float probs[kKeyTile], parts[kQueryWarps];
  float* sums = dynamic_shared<float>();  // (head_dim)
  const std::int64_t row = blockIdx.x, head = blockIdx.y, key_col = head / a.heads_per_key * a.head_dim;
  const std::int32_t* table = a.pages + a.tables[row];
  const std::int64_t end = a.positions[row] + std::int64_t{1},
                     begin = a.window > 0 && a.window < end ? end - a.window : 0;
  const T* query = a.qkv.row(row) + head * a.head_dim;
  for (std::int64_t d = threadIdx.x; d < a.head_dim; d += kRowThreads) sums[d] = 0;
  float largest = kLowestScore, total = 0;
  for (std::int64_t tile = begin; tile < end; tile += kKeyTile) {
    const int count = end - tile < kKeyTile ? static_cast<int>(end - tile) : kKeyTile;
    const int thread = static_cast<int>(threadIdx.x);
    for (int key = thread / 32; key < count; key += kQueryWarps) {
      const float scaled =
          product(query, a.keys.row(a.slot(table, tile + key)) + key_col, a.head_dim, a.aligned) * a.scale;
      const float score = a.soft_cap == 0 ? scaled : soft_capped<FloatArithmetic>(scaled, a.soft_cap);
      if (lane_of_warp() == 0) probs[key] = score;
    }
    __syncthreads();
    const float score = thread < count ? probs[thread] : kLowestScore;
    const float top = fmaxf(largest, block_max(score, parts));
    const float prob = thread < count ? expf(score - top) : 0.0F;
    probs[thread] = prob;
    const float rescale = expf(largest - top);
    total = total * rescale + block_sum(prob, parts);  // its barriers let all see the probabilities
    largest = top;
    for (std::int64_t d = threadIdx.x; d < a.head_dim; d += kRowThreads) {
      float sum = sums[d] * rescale;
#pragma unroll 8
      for (int key = 0; key < count; ++key) {
        sum = fmaf(probs[key], widened(a.values.row(a.slot(table, tile + key))[key_col + d]), sum);
      }
      sums[d] = sum;
    }
    __syncthreads();  // the next tile's scores take the place of the probabilities
  }
  T* out = a.out.row(row) + head * a.head_dim;
  for (std::int64_t d = threadIdx.x; d < a.head_dim; d += kRowThreads) out[d] = narrowed<T>(sums[d] / total);
}

}  // namespace

PageBytes page_bytes(const Context&, const AttentionShape& shape, DType dtype) {
  const std::size_t bytes =
      static_cast<std::size_t>(kPageTokens * shape.num_kv_heads * shape.head_dim) * size_of(dtype);
  return {bytes, bytes};
}

void paged_attention(const Context& ctx, Scratch&, const PagedAttention& args) {
  const Stream& stream = stream_of(ctx);
  const AttentionShape& s = args.shape;
  const std::size_t shared_bytes = static_cast<std::size_t>(s.head_dim) * sizeof(float);
  require(shared_bytes <= (std::size_t{32} << 10), "invalid_argument", "paged_attention: at most 8192 elements a head");
  const std::int64_t cols = s.num_kv_heads * s.head_dim;
  const Matrix keys{args.keys, args.qkv.dtype, args.num_pages * kPageTokens, cols, cols},
      values{args.values, keys.dtype, keys.rows, cols, cols};
  with_element(args.qkv.dtype, [&]<class T>(T*) {
    const QueryArguments<T> a{rows_of<T>(args.qkv),
                              rows_of<T>(keys),
                              rows_of<T>(values),
                              rows_of<T>(args.out),
                              args.rows.positions.on_device(),
                              args.rows.tables.on_device(),
                              args.rows.pages.on_device(),
                              s.head_dim,
                              s.num_heads / s.num_kv_heads,
                              s.query_size(),
                              args.window,
                              s.score_scale(),
                              static_cast<float>(s.soft_cap),
                              rows_aligned_for<kElements>(args.qkv, keys) && s.head_dim % kElements == 0};
    launch("paged_attention", stream, {num_blocks_for(s.sequence_length, 1), kRowThreads}, append_kernel<T>, a, cols);
    const dim3 blocks(num_blocks_for(s.sequence_length, 1), num_blocks_across(s.num_heads, 1));
    launch("paged_attention", stream, {blocks, kRowThreads, shared_bytes}, query_kernel<T>, a);
  });
}

}  // namespace zerofleet::cuda
