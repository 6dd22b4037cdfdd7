#include "kernels/embedding/embedding.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check(const Indices& tokens, std::int64_t vocab_size, std::int64_t width, const ConstMatrix& rows) {
  require(static_cast<std::int64_t>(tokens.size()) == rows.rows && width == rows.cols, "invalid_argument",
          "embedding: table, tokens and rows do not fit each other");
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < vocab_size) continue;
    throw Error("token_out_of_vocab",
                "token " + std::to_string(token) + " is outside a vocabulary of " + std::to_string(vocab_size));
  }
}

void check(const Indices& tokens, const ConstMatrix& table, const ConstMatrix& rows) {
  check(tokens, table.rows, table.cols, rows);
}

}  // namespace

void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows) {
  check(tokens, table, rows);
  require(table.dtype == rows.dtype, "invalid_argument", "embedding: table and rows differ in dtype");
  backend_of(ctx).embedding(ctx, table, tokens, rows);
}

void packed_embedding(const Context& ctx, const PackedMatrix& table, const Indices& tokens, const Matrix& rows) {
  check(tokens, table.n(), table.k(), rows);
  require(table.dtype() == rows.dtype, "invalid_argument", "embedding: table and rows differ in dtype");
  backend_of(ctx).packed_embedding(ctx, table, tokens, rows);
}

SortedPositions::SortedPositions(std::span<const std::int32_t> tokens) : order(tokens.size()) {
  std::iota(order.begin(), order.end(), 0);
  const auto token = [&](std::int32_t position) { return tokens[static_cast<std::size_t>(position)]; };
  std::ranges::stable_sort(order, {}, token);
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || token(order[i]) != token(order[i - 1])) starts.push_back(static_cast<std::int32_t>(i));
  }
  starts.push_back(static_cast<std::int32_t>(order.size()));
}

void embedding_backward(const Context& ctx, const Indices& tokens, const PositionGroups& groups,
                        const ConstMatrix& drows, const Matrix& dtable, bool accumulate) {
  check(tokens, dtable, drows);
  require(dtable.dtype == DType::kF32, "invalid_argument", "embedding_backward: the table's gradient is fp32");
  backend_of(ctx).embedding_backward(ctx, tokens, groups, drows, dtable, accumulate);
}

}  // namespace zerofleet
