#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"
#include "kernels/matrix.h"
#include "kernels/scratch.h"

namespace zerofleet {

/// Heads of a grouped-query attention over B sequences of T tokens. Query head h uses key/value head h / (H / KVH).
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t sequence_length = 0;
  std::int64_t num_heads = 0;
  std::int64_t num_kv_heads = 0;
  std::int64_t head_dim = 0;

  std::int64_t query_size() const { return num_heads * head_dim; }
  std::int64_t qkv_size() const { return (num_heads + 2 * num_kv_heads) * head_dim; }
};

/// Causal softmax(q kᵀ / sqrt(head_dim)) v. Scores exist for one block of query rows of one head at a time.
struct AttentionForward {
  AttentionShape shape;
  ConstMatrix qkv;       // (B·T, qkv_size): query heads, then key heads, then value heads
  Matrix out;            // (B·T, query_size)
  std::span<float> lse;  // (B, H, T) ln Σ exp of the scaled scores of a row, kept for the backward
};

struct AttentionBackward {
  AttentionShape shape;
  ConstMatrix qkv;
  ConstMatrix out;             // of the forward
  std::span<const float> lse;  // of the forward
  ConstMatrix dout;            // (B·T, query_size)
  Matrix dqkv;                 // (B·T, qkv_size)
};

/// Both throw Error{"invalid_argument"} where shapes or types do not fit.
void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args);
void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args);

}  // namespace zerofleet
