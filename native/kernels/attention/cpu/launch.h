#pragma once

#include "core/device/context.h"
#include "kernels/attention/attention.h"
#include "kernels/attention/paged_attention.h"
#include "kernels/attention/rope.h"

// The CPU's launchers of this family; arguments were checked by the entries in kernels/attention/.
namespace zerofleet::cpu {

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args);
void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args);
PageBytes page_bytes(const Context& ctx, const AttentionShape& shape, DType dtype);
void paged_attention(const Context& ctx, Scratch& scratch, const PagedAttention& args);
void rope(const Context& ctx, const Rope& args);

}  // namespace zerofleet::cpu
