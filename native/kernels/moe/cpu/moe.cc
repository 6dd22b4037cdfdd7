#include "kernels/moe/moe.h"

#include <cstdint>
#include <cstring>
#include <span>

#include "core/device/context.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/moe/simd/moe.h"

// Tasks are chunks of tokens. A token's rows are its own, so no two tasks write the same one.
namespace zerofleet::cpu {

void gather_rows(const Context& ctx, const ExpertGroups& groups, const ConstMatrix& x, const Matrix& rows) {
  const std::size_t row_bytes = static_cast<std::size_t>(x.cols) * size_of(x.dtype);
  for_row_chunks(ctx, rows.rows, [&](std::int64_t begin, std::int64_t count) {
    for (std::int64_t row = begin; row < begin + count; ++row) {
      std::memcpy(rows.at(row, 0), x.at(groups.tokens[static_cast<std::size_t>(row)], 0), row_bytes);
    }
  });
}

void sum_rows(const Context& ctx, const ExpertGroups& groups, std::span<const float> weights, const ConstMatrix& rows,
              const Matrix& y) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, sum_expert_rows);
  for_row_chunks(ctx, y.rows, [&](std::int64_t token, std::int64_t tokens) {
    ExpertRowsArgs chunk;
    chunk.pair_rows = groups.rows.data() + token * groups.experts_per_token;
    chunk.weights = weights.empty() ? nullptr : weights.data() + token * groups.experts_per_token;
    chunk.rows = rows_from(rows, 0);
    chunk.sums = rows_from(y, token);
    chunk.tokens = tokens;
    chunk.chosen = groups.experts_per_token;
    chunk.cols = y.cols;
    chunk.dtype = y.dtype;
    kernel(chunk);
  });
}

void combine_rows_backward(const Context& ctx, const CombineBackward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, sum_expert_rows_backward);
  const ExpertGroups& groups = *args.groups;
  for_row_chunks(ctx, args.dy.rows, [&](std::int64_t token, std::int64_t tokens) {
    ExpertRowsArgs chunk;
    chunk.pair_rows = groups.rows.data() + token * groups.experts_per_token;
    chunk.weights = args.weights.data() + token * groups.experts_per_token;
    chunk.rows = rows_from(args.rows, 0);
    chunk.dsums = rows_from(args.dy, token);
    chunk.drows = rows_from(args.drows, 0);
    chunk.dweights = args.dweights.data() + token * groups.experts_per_token;
    chunk.tokens = tokens;
    chunk.chosen = groups.experts_per_token;
    chunk.cols = args.dy.cols;
    chunk.dtype = args.dy.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
