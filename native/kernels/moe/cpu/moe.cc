#include "kernels/moe/moe.h"

#include <cstring>
#include <vector>

#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/moe/cpu/launch.h"
#include "kernels/moe/moe_router.h"
#include "kernels/moe/simd/moe.h"

// Tasks are chunks of tokens. A token's rows are its own, so no two tasks write the same one.
namespace zerofleet::cpu {

void route(const Context& ctx, const RouterForward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, router_rows);
  for_row_chunks(ctx, args.logits.rows, [&](std::int64_t row, std::int64_t rows) {
    RouterArgs chunk;
    chunk.logits = args.logits.at(row, 0);
    chunk.logits_stride = args.logits.stride;
    chunk.probs = args.probs.data() + row * args.logits.cols;
    chunk.experts = args.experts.data() + row * args.experts_per_token;
    chunk.weights = args.weights.data() + row * args.experts_per_token;
    chunk.rows = rows;
    chunk.num_experts = args.logits.cols;
    chunk.chosen = args.experts_per_token;
    chunk.dtype = args.logits.dtype;
    kernel(chunk);
  });
}

void route_backward(const Context& ctx, const RouterBackward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, router_backward_rows);
  const std::int64_t num_experts = args.dlogits.cols;
  for_row_chunks(ctx, args.dlogits.rows, [&](std::int64_t row, std::int64_t rows) {
    std::vector<float> temporary(static_cast<std::size_t>(num_experts));
    RouterArgs chunk;
    chunk.probs = const_cast<float*>(args.probs.data()) + row * num_experts;  // the backward only reads them
    chunk.experts = const_cast<std::int32_t*>(args.experts.data()) + row * args.experts_per_token;
    chunk.dweights = args.dweights.data() + row * args.experts_per_token;
    chunk.dprobs = args.dprobs.empty() ? nullptr : args.dprobs.data();
    if (!args.lengths.empty()) {
      chunk.lengths = args.lengths.data();
      chunk.length = args.dlogits.rows / static_cast<std::int64_t>(args.lengths.size());
    }
    chunk.first_token = row;
    chunk.dlogits = args.dlogits.at(row, 0);
    chunk.dlogits_stride = args.dlogits.stride;
    chunk.row = temporary.data();
    chunk.rows = rows;
    chunk.num_experts = num_experts;
    chunk.chosen = args.experts_per_token;
    chunk.dtype = args.dlogits.dtype;
    kernel(chunk);
  });
}

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
    chunk.rows = rows.data;
    chunk.rows_stride = rows.stride;
    chunk.sums = y.at(token, 0);
    chunk.sums_stride = y.stride;
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
    chunk.rows = args.rows.data;
    chunk.rows_stride = args.rows.stride;
    chunk.dsums = args.dy.at(token, 0);
    chunk.dsums_stride = args.dy.stride;
    chunk.drows = args.drows.data;
    chunk.drows_stride = args.drows.stride;
    chunk.dweights = args.dweights.data() + token * groups.experts_per_token;
    chunk.tokens = tokens;
    chunk.chosen = groups.experts_per_token;
    chunk.cols = args.dy.cols;
    chunk.dtype = args.dy.dtype;
    kernel(chunk);
  });
}

}  // namespace zerofleet::cpu
