#pragma once

#include <cmath>
#include <cstdint>

#include "core/error.h"
#include "kernels/attention/attention.h"
#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/formulas/soft_cap.h"
#include "kernels/elementwise/cuda/dropout_mask.cuh"

// Arguments shared by all attention kernels, and the division of their work: a block of threads does one tile of query
// rows, or of keys, of one head. Blocks with most work come first, so that the last ones to end are short.
namespace zerofleet::cuda {

struct AttentionSizes {
  std::int64_t batch;
  int length, heads, kv_heads, head_dim;
};

/// Visible keys of a query: those up to itself from first_key() on, which never falls.
struct AttentionMask {
  const std::int32_t* starts;  // (B·T) or null
  int window;                  // 0: no limit
  int length;

  __device__ int first_key(std::int64_t batch, int query) const {
    const int position = query < length ? query : length - 1;
    int first = window == 0 || position + 1 <= window ? 0 : position + 1 - window;
    if (starts != nullptr) {
      const int start = starts[batch * length + position];
      first = start > first ? start : first;
    }
    return first;
  }
};

template <class T>
struct AttentionCall {
  AttentionSizes sizes;
  AttentionMask mask;
  Rows<const T> qkv;
  DropoutRule dropout;
  bool drops;
  float scale;     // of the scores
  float soft_cap;  // 0: none

  /// A product q · k, scaled and capped.
  __device__ float score(float product) const {
    const float scaled = product * scale;
    return soft_cap == 0 ? scaled : soft_capped<FloatArithmetic>(scaled, soft_cap);
  }
  /// The derivative of a score by its product.
  __device__ float slope(float score) const {
    return soft_cap == 0 ? scale : soft_cap_slope<FloatArithmetic>(score, soft_cap) * scale;
  }
};

template <class T>
AttentionCall<T> attention_call(const AttentionShape& shape, const ConstMatrix& qkv, const AttentionOptions& options) {
  constexpr std::int64_t kMost = 1 << 30;  // positions and widths are ints in the kernels
  require(shape.sequence_length <= kMost && shape.qkv_size() <= kMost, "invalid_argument",
          "attention: a CUDA device takes sequences and rows of up to 2^30");
  const auto length = static_cast<int>(shape.sequence_length);
  const auto window = static_cast<int>(options.window < kMost ? options.window : kMost);
  return {{shape.batch, length, static_cast<int>(shape.num_heads), static_cast<int>(shape.num_kv_heads),
           static_cast<int>(shape.head_dim)},
          {options.document_starts.empty() ? nullptr : options.document_starts.on_device(), window, length},
          rows_of<T>(qkv),
          dropout_rule(options.dropout_key, options.dropout),
          options.dropout > 0,
          shape.score_scale(),
          static_cast<float>(shape.soft_cap)};
}

/// The tile that a block of threads works on. Heads of one (batch, key/value head) are neighbours: they share keys.
struct AttentionTile {
  int batch;
  int head;   // of queries, or of keys and values
  int first;  // query row or key
};

__device__ inline AttentionTile tile_of_block(std::int64_t batch, int heads, int tile_rows, int num_tiles,
                                              bool last_first) {
  const std::int64_t each = batch * heads, index = blockIdx.x;
  const int tile = static_cast<int>(index / each);
  const std::int64_t position = index % each;
  return {static_cast<int>(position / heads), static_cast<int>(position % heads),
          (last_first ? num_tiles - 1 - tile : tile) * tile_rows};
}

/// Rows of one head's columns from `data` on; elements beyond `rows` or `cols` count as zero.
template <class T>
struct HeadTile {
  const T* data;
  std::int64_t stride;
  int rows, cols;
};

/// Row of a (B·T, …) matrix.
__device__ inline std::int64_t token_row(const AttentionSizes& s, std::int64_t batch, int position) {
  return batch * s.length + position;
}

/// The columns of one head, from row `first` of a sequence to its end, of a (B·T, …) matrix.
template <class T>
__device__ HeadTile<T> head_tile(const Rows<const T>& matrix, const AttentionSizes& s, std::int64_t batch, int head,
                                 int first) {
  return {matrix.row(token_row(s, batch, first)) + static_cast<std::int64_t>(head) * s.head_dim, matrix.stride,
          s.length - first, s.head_dim};
}

__device__ inline int kv_head_of(const AttentionSizes& s, int head) { return head / (s.heads / s.kv_heads); }

/// Index of a query row in a (B, H, T) array.
__device__ inline std::int64_t row_index(const AttentionSizes& s, std::int64_t batch, int head, int query) {
  return (batch * s.heads + head) * s.length + query;
}

/// A score: `row` of (B, H, T) and its key.
struct ScoreIndex {
  std::int64_t row;
  int key;
};

template <class T>
__device__ bool keeps(const AttentionCall<T>& call, std::int64_t row, int key) {
  return dropout_keeps(call.dropout, static_cast<std::uint64_t>(row) * static_cast<std::uint64_t>(call.sizes.length) +
                                         static_cast<std::uint64_t>(key));
}

/// Bit e says whether dropout keeps the score index_of(e), for e < kCount ≤ 32. A loop on purpose: unrolled with the
/// sums that the bits are for, ten rounds for each would be most of a kernel's code and of its registers.
template <int kCount, class T, class IndexOf>
__device__ std::uint32_t kept_bits(const AttentionCall<T>& call, const IndexOf& index_of) {
  std::uint32_t bits = 0;
  ZF_DEVICE_UNROLL(1)
  for (int e = 0; e < kCount; ++e) {
    const ScoreIndex at = index_of(e);
    bits |= (keeps(call, at.row, at.key) ? 1U : 0U) << e;
  }
  return bits;
}

template <class T>
struct AttentionForwardCall {
  AttentionCall<T> call;
  Rows<T> out;
  float* lse;
};

template <class T>
struct AttentionBackwardCall {
  AttentionCall<T> call;
  Rows<const T> dout;
  Rows<T> dqkv;
  const float* lse;
  const float* delta;  // (B, H, T) Σ dO · O of a row
};

}  // namespace zerofleet::cuda
