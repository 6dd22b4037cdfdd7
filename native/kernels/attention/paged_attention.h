#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/context.h"
#include "core/dtype.h"
#include "kernels/attention/attention.h"
#include "kernels/common/indices.h"
#include "kernels/common/matrix.h"
#include "kernels/common/scratch.h"

namespace zerofleet {

/// Tokens of a page of keys and values. Blocks of keys that attention() works on at once begin and end with pages.
inline constexpr std::int64_t kPageTokens = 32;

/// New rows of any number of sequences. Rows of one sequence lie behind each other, in the order of their positions.
struct PagedRows {
  Indices positions;  // (M) of each row's token in its sequence, from 0
  Indices tables;     // (M) where the table of the row's sequence begins in `pages`
  Indices pages;      // for each sequence the pages of its tokens, kPageTokens in each
};

/// Bytes of a page of one layer; the layout is the device's.
struct PageBytes {
  std::size_t keys = 0;
  std::size_t values = 0;
};
PageBytes page_bytes(const Context& ctx, const AttentionShape& shape, DType dtype);

/// Causal attention of new tokens over all tokens of their sequences, whose keys and values are kept in pages. On a CPU
/// each row has the bits that attention() gives the same token in a sequence without documents. These bits depend
/// neither on the other rows nor on how many of a sequence's tokens come at once.
struct PagedAttention {
  AttentionShape shape;         // batch 1, sequence_length M
  ConstMatrix qkv;              // (M, qkv_size), rotated
  std::byte* keys = nullptr;    // pages, zeros at first; those of the rows' positions are written
  std::byte* values = nullptr;  // the same
  std::int64_t num_pages = 0;
  PagedRows rows;
  std::int64_t window = 0;  // how many keys a query sees at most, itself included; 0: no limit
  Matrix out;               // (M, query_size)
};

/// Throws Error{"invalid_argument"} where shapes or types do not fit, or a row has no page.
void paged_attention(const Context& ctx, Scratch& scratch, const PagedAttention& args);

}  // namespace zerofleet
