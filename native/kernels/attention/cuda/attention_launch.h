#pragma once

#include "core/device/context.h"
#include "kernels/attention/attention.h"

// The two implementations of attention on CUDA that are our own. Both support all options for all shapes that they
// accept.
namespace zerofleet::cuda {

/// dots (B, H, T) = Σ dO · O of a row, which both backwards need.
void row_dots(const Context& ctx, const AttentionBackward& args, float* dots);

/// fp32 arithmetic in all types and for all shapes.
void plain_attention(const Context& ctx, const AttentionForward& args);
void plain_attention_backward(const Context& ctx, const AttentionBackward& args, const float* delta);

/// On tensor cores: bf16 and fp16 with heads of up to kMmaWidth columns.
inline constexpr std::int64_t kMmaWidth = 128;
void mma_attention(const Context& ctx, const AttentionForward& args);
void mma_attention_backward(const Context& ctx, const AttentionBackward& args, const float* delta);

}  // namespace zerofleet::cuda
