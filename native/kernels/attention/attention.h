#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "kernels/common/indices.h"
#include "kernels/common/matrix.h"
#include "kernels/common/scratch.h"
#include "kernels/elementwise/dropout.h"

namespace zerofleet {

/// Heads of a grouped-query attention over B sequences of T tokens. Query head h uses key/value head h / (H / KVH).
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence_length = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;
  double scale = 0;     // of the scores; 0: 1 / sqrt(head_dim)
  double soft_cap = 0;  // of the scaled scores (kernels/common/formulas/soft_cap.h); 0: none

  float score_scale() const {
    return scale == 0 ? 1.0F / std::sqrt(static_cast<float>(head_dim)) : static_cast<float>(scale);
  }
  std::int64_t query_size() const { return num_heads * head_dim; }
  std::int64_t qkv_size() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

/// Limits of a query's visible keys beside "no later key", and dropout. Without options a query sees all keys up to
/// itself.
struct AttentionOptions {
  std::int64_t window = 0;  // how many keys a query sees at most, itself included; 0: no limit
  /// (B·T) the position within its sequence where the document of this token begins, or empty: 0. A query sees its own
  /// document only. Within a sequence they never fall, and none is behind its token.
  Indices document_starts = {};
  /// Dropout of the probabilities, with the element ((b · H + h) · T + query) · T + key
  /// (kernels/elementwise/dropout.h).
  DropoutKey dropout_key = {};
  double dropout = 0;  // probability of being dropped, in [0, 1)
};

/// Causal softmax(soft_cap(q kᵀ · score_scale)) v. Scores exist for one block of query rows of one head and one block
/// of keys at a time. The softmax is gathered over blocks of keys, with the largest score so far as the reference.
struct AttentionForward {
  AttentionShape shape;
  ConstMatrix qkv;       // (B·T, qkv_size): query heads, then key heads, then value heads
  Matrix out;            // (B·T, query_size)
  std::span<float> lse;  // (B, H, T) ln Σ exp of the scaled and capped scores of a row, kept for the backward
  AttentionOptions options = {};
};

struct AttentionBackward {
  AttentionShape shape;
  ConstMatrix qkv;
  ConstMatrix out;                // of the forward
  std::span<const float> lse;     // of the forward
  ConstMatrix dout;               // (B·T, query_size)
  Matrix dqkv;                    // (B·T, qkv_size)
  AttentionOptions options = {};  // of the forward
};

/// Both throw Error{"invalid_argument"} where shapes or types do not fit.
void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args);
void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args);

}  // namespace zerofleet
