#include "kernels/attention/paged_attention.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

bool fits(const ConstMatrix& matrix, std::int64_t rows, std::int64_t cols, DType dtype) {
  return matrix.data != nullptr && matrix.rows == rows && matrix.cols == cols && matrix.dtype == dtype;
}

/// Returns true if all pages up to the row's own are there.
bool has_pages(const PagedAttention& args, std::size_t row) {
  const std::int64_t position = args.rows.positions[row], table = args.rows.tables[row];
  const std::int64_t count = position / kPageTokens + 1;
  if (position < 0 || table < 0 || table + count > std::ssize(args.rows.pages.host())) return false;
  const std::int32_t page = args.rows.pages[static_cast<std::size_t>(table + count - 1)];
  return page >= 0 && page < args.num_pages;
}

void check(const PagedAttention& args) {
  const AttentionShape& s = args.shape;
  require(s.batch == 1 && s.sequence_length >= 1 && s.head_dim >= 1 && s.num_kv_heads >= 1 &&
              s.num_heads % s.num_kv_heads == 0,
          "invalid_argument", "paged_attention: one batch of rows, and key/value heads that divide the heads");
  const DType dtype = args.qkv.dtype;
  require(fits(args.qkv, s.sequence_length, s.qkv_size(), dtype) &&
              fits(args.out, s.sequence_length, s.query_size(), dtype) && args.keys != nullptr &&
              args.values != nullptr && args.window >= 0,
          "invalid_argument", "paged_attention: qkv, pages and out do not fit the shape");
  const auto rows = static_cast<std::size_t>(s.sequence_length);
  require(args.rows.positions.size() == rows && args.rows.tables.size() == rows, "invalid_argument",
          "paged_attention: each row needs a position and a table");
  for (std::size_t row = 0; row < rows; ++row) {
    require(has_pages(args, row), "invalid_argument", "paged_attention: a row has no page");
  }
}

}  // namespace

PageBytes page_bytes(const Context& ctx, const AttentionShape& shape, DType dtype) {
  return backend_of(ctx).page_bytes(ctx, shape, dtype);
}

void paged_attention(const Context& ctx, Scratch& scratch, const PagedAttention& args) {
  check(args);
  backend_of(ctx).paged_attention(ctx, scratch, args);
}

}  // namespace zerofleet
