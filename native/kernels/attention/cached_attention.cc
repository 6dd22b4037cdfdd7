#include "kernels/attention/cached_attention.h"

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

bool fits(const ConstMatrix& matrix, std::int64_t rows, std::int64_t cols, DType dtype) {
  return matrix.data != nullptr && matrix.rows == rows && matrix.cols == cols && matrix.dtype == dtype;
}

void check(const CachedAttention& args) {
  const AttentionShape& s = args.shape;
  require(s.batch == 1 && s.sequence_length >= 1 && s.head_dim >= 1 && s.num_kv_heads >= 1 &&
              s.num_heads % s.num_kv_heads == 0,
          "invalid_argument", "cached_attention: one sequence, and key/value heads that divide the heads");
  const DType dtype = args.qkv.dtype;
  const std::int64_t key_size = s.num_kv_heads * s.head_dim;
  require(fits(args.qkv, s.sequence_length, s.qkv_size(), dtype) &&
              fits(args.out, s.sequence_length, s.query_size(), dtype) &&
              fits(args.keys, args.keys.rows, key_size, dtype) && fits(args.values, args.keys.rows, key_size, dtype),
          "invalid_argument", "cached_attention: qkv, keys, values and out do not fit the shape");
  require(args.window >= 0 && args.first >= 0 && args.first + s.sequence_length <= args.keys.rows, "invalid_argument",
          "cached_attention: no room for the new tokens");
}

}  // namespace

void cached_attention(const Context& ctx, Scratch& scratch, const CachedAttention& args) {
  check(args);
  backend_of(ctx).cached_attention(ctx, scratch, args);
}

}  // namespace zerofleet
