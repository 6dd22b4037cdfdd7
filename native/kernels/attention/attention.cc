#include "kernels/attention/attention.h"

#include <iterator>
#include <string>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

bool fits(const AttentionShape& shape, const ConstMatrix& matrix, std::int64_t cols, DType dtype) {
  return matrix.data != nullptr && matrix.rows == shape.batch * shape.sequence_length && matrix.cols == cols &&
         matrix.dtype == dtype;
}

void check(const AttentionShape& shape, const ConstMatrix& qkv, const ConstMatrix& out, std::size_t lse_size) {
  require(shape.num_kv_heads >= 1 && shape.num_heads % shape.num_kv_heads == 0 && shape.head_dim >= 1,
          "invalid_argument", "attention: the number of key/value heads must divide the number of heads");
  require(shape.soft_cap >= 0, "invalid_argument", "attention: a soft cap is above 0; 0 is without");
  require(fits(shape, qkv, shape.qkv_size(), qkv.dtype) && fits(shape, out, shape.query_size(), qkv.dtype) &&
              static_cast<std::int64_t>(lse_size) == shape.batch * shape.num_heads * shape.sequence_length,
          "invalid_argument", "attention: qkv, out and lse do not fit the shape");
}

void check(const AttentionShape& shape, const AttentionOptions& options) {
  require(options.window >= 0, "invalid_argument", "attention: a window has at least one key; 0 is without a limit");
  dropout_rule(options.dropout_key, options.dropout);  // refuses a probability outside [0, 1)
  if (options.document_starts.empty()) return;
  require(std::ssize(options.document_starts.host()) == shape.batch * shape.sequence_length, "invalid_argument",
          "attention: needs one document start for each token");
  std::int32_t before = 0;
  for (std::int64_t row = 0; row < std::ssize(options.document_starts.host()); ++row) {
    const std::int64_t position = row % shape.sequence_length;
    if (position == 0) before = 0;
    const std::int32_t start = options.document_starts[static_cast<std::size_t>(row)];
    require(start >= before && start <= position, "invalid_argument",
            "attention: token " + std::to_string(row) + ", at position " + std::to_string(position) +
                " of its sequence, cannot have a document that begins at " + std::to_string(start));
    before = start;
  }
}

}  // namespace

void attention(const Context& ctx, Scratch& scratch, const AttentionForward& args) {
  check(args.shape, args.qkv, args.out, args.lse.size());
  check(args.shape, args.options);
  backend_of(ctx).attention(ctx, scratch, args);
}

void attention_backward(const Context& ctx, Scratch& scratch, const AttentionBackward& args) {
  check(args.shape, args.qkv, args.out, args.lse.size());
  check(args.shape, args.dqkv, args.dout, args.lse.size());
  check(args.shape, args.options);
  require(args.dqkv.dtype == args.qkv.dtype, "invalid_argument", "attention: qkv and its gradient differ in dtype");
  backend_of(ctx).attention_backward(ctx, scratch, args);
}

}  // namespace zerofleet
