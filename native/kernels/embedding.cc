#include "kernels/embedding.h"

#include <string>

#include "core/error.h"
#include "kernels/cpu/launch.h"
#include "kernels/cuda/model_launch.h"

namespace zerofleet {
namespace {

void check(const Indices& tokens, const ConstMatrix& table, const ConstMatrix& rows) {
  require(static_cast<std::int64_t>(tokens.size()) == rows.rows && table.cols == rows.cols, "invalid_argument",
          "embedding: table, tokens and rows do not fit each other");
  for (const std::int32_t token : tokens) {
    if (token >= 0 && token < table.rows) continue;
    throw Error("token_out_of_vocab",
                "token " + std::to_string(token) + " is outside a vocabulary of " + std::to_string(table.rows));
  }
}

}  // namespace

void embedding(const Context& ctx, const ConstMatrix& table, const Indices& tokens, const Matrix& rows) {
  check(tokens, table, rows);
  require(table.dtype == rows.dtype, "invalid_argument", "embedding: table and rows differ in dtype");
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::embedding(ctx, table, tokens, rows);
    case DeviceKind::kCuda: return cuda::embedding(ctx, table, tokens, rows);
  }
}

void embedding_backward(const Context& ctx, const Indices& tokens, const ConstMatrix& drows,
                        const Matrix& dtable, bool accumulate) {
  check(tokens, dtable, drows);
  require(dtable.dtype == DType::kF32, "invalid_argument", "embedding_backward: the table's gradient is fp32");
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::embedding_backward(ctx, tokens, drows, dtable, accumulate);
    case DeviceKind::kCuda: return cuda::embedding_backward(ctx, tokens, drows, dtable, accumulate);
  }
}

}  // namespace zerofleet
