#pragma once

#include "core/device/context.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/cached_attention.h"
#include "kernels/attention/rope.h"

// The CPU's launchers of this family; arguments were checked by the entries in kernels/attention/.
namespace zerofleet::cpu {

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args);
void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args);
void cached_attention(const Context& ctx, Scratch& scratch, const CachedAttention& args);
void rope(const Context& ctx, const Rope& args);

}  // namespace zerofleet::cpu
