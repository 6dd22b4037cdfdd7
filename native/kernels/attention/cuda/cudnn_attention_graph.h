#pragma once

#include <compare>
#include <cstdint>
#include <memory>

#include "kernels/attention/attention.h"
#include "kernels/attention/cuda/cudnn_graph.h"

namespace zerofleet::cudnn {

/// Properties that a graph of attention depends on: its part of a call, and how matrices lie in memory.
struct GraphShape {
  bool is_backward;
  DType dtype;
  std::int64_t batch, heads, kv_heads;  // of the part
  std::int64_t length, head_dim, window;
  float scale;                                        // of the scores
  std::int64_t all_heads;                             // of the call
  std::int64_t qkv_row, out_row, dout_row, dqkv_row;  // elements from a row to the next; the last two 0 in a forward

  auto operator<=>(const GraphShape&) const = default;
};

/// Ids of tensors in memory.
enum Operand : std::int64_t {
  kQuery = 1,
  kKey,
  kValue,
  kOut,
  kStats,  // AttentionForward::lse
  kOutGradient,
  kRowDots,  // (B, H, T) fp32 of a backward's own: Σ dO · O of a row
  kQueryGradient,
  kKeyGradient,
  kValueGradient
};

/// Bytes of dS in 16 bits, which a backward keeps in its workspace: cuDNN pads sequences to 64 tokens.
std::int64_t score_bytes(const GraphShape& shape);

/// handle: null for a graph of a described device. Throws Refusal.
Graph attention_graph(const std::shared_ptr<const Library>& library, const GraphShape& shape, Handle* handle);

}  // namespace zerofleet::cudnn
