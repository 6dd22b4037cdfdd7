#pragma once

#include <cstdint>

#include "core/device/context.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Order of the columns of queries, keys and values. By kind: all queries, all keys, all values. By head: the query,
/// key and value of head 0, then those of head 1, and so on.
struct HeadOrder {
  Matrix qkv;  // (M, 3 · num_heads · head_dim), reordered in place
  std::int64_t num_heads = 0;
  bool by_head = false;  // the new order; the old one is the other
};

/// Throws Error{"invalid_argument"} unless the columns are whole heads.
void order_heads(const Context& ctx, const HeadOrder& args);

}  // namespace zerofleet
