#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/attention/attention.h"
#include "kernels/common/matrix.h"
#include "kernels/common/scratch.h"

namespace zerofleet {

/// Causal attention of the newest tokens of one sequence, with the keys and values of all its tokens kept from call to
/// call. Every query is computed alone, so a result does not depend on how many tokens come at once.
struct CachedAttention {
  AttentionShape shape;     // of the new tokens: batch 1, sequence_length M
  ConstMatrix qkv;          // (M, qkv_size) of the new tokens, rotated
  Matrix keys;              // (C, num_kv_heads · head_dim): rows [first, first + M) are written, the ones before are read
  Matrix values;            // the same
  std::int64_t first = 0;   // tokens that came before
  std::int64_t window = 0;  // how many keys a query sees at most, itself included; 0: no limit
  Matrix out;               // (M, query_size)
};

/// Throws Error{"invalid_argument"} where shapes or types do not fit, or the keys have no room for the new tokens.
void cached_attention(const Context& ctx, Scratch& scratch, const CachedAttention& args);

}  // namespace zerofleet
