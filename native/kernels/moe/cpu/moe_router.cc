#include "kernels/moe/moe_router.h"

#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "core/device/context.h"
#include "core/error.h"
#include "kernels/common/cpu/isa_dispatch.h"
#include "kernels/common/cpu/row_chunks.h"
#include "kernels/moe/simd/moe.h"

namespace zerofleet::cpu {
namespace {

void check_experts(std::span<const std::int32_t> experts, std::int64_t num_experts) {
  for (const std::int32_t expert : experts) {
    require(expert >= 0 && expert < num_experts, "invalid_argument",
            "router: expert " + std::to_string(expert) + " of " + std::to_string(num_experts));
  }
}

}  // namespace

void route(const Context& ctx, const RouterForward& args) {
  const auto kernel = ZF_PICK_KERNEL(ctx.cpu_isa, router_rows);
  for_row_chunks(ctx, args.logits.rows, [&](std::int64_t row, std::int64_t rows) {
    RouterArgs chunk;
    chunk.logits = rows_from(args.logits, row);
    chunk.probs = args.probs.data() + row * args.logits.cols;
    chunk.experts = args.experts.data() + row * args.experts_per_token;
    chunk.weights = args.weights.data() + row * args.experts_per_token;
    chunk.rows = rows;
    chunk.num_experts = args.logits.cols;
    chunk.chosen = args.experts_per_token;
    chunk.shares = args.shares;
    chunk.dtype = args.logits.dtype;
    kernel(chunk);
  });
}

void route_backward(const Context& ctx, const RouterBackward& args) {
  check_experts(args.experts, args.dlogits.cols);
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
    chunk.dlogits = rows_from(args.dlogits, row);
    chunk.row = temporary.data();
    chunk.rows = rows;
    chunk.num_experts = num_experts;
    chunk.chosen = args.experts_per_token;
    chunk.shares = args.shares;
    chunk.dtype = args.dlogits.dtype;
    kernel(chunk);
  });
}

void add_router_load(const Context&, const RouterChoices& chosen, const RouterSums& sums) {
  check_experts(chosen.experts, std::ssize(sums.probs));
  const std::size_t num_experts = sums.probs.size(), num_tokens = chosen.probs.size() / num_experts;
  const std::size_t num_sequences = chosen.lengths.empty() ? 1 : chosen.lengths.size();
  const std::size_t length = num_tokens / num_sequences, k = num_tokens == 0 ? 0 : chosen.experts.size() / num_tokens;
  for (std::size_t sequence = 0; sequence < num_sequences; ++sequence) {
    const std::size_t begin = sequence * length;
    const std::size_t count = chosen.lengths.empty() ? length : static_cast<std::size_t>(chosen.lengths[sequence]);
    const auto probs = chosen.probs.subspan(begin * num_experts, count * num_experts);
    for (std::size_t i = 0; i < probs.size(); ++i) sums.probs[i % num_experts] += static_cast<double>(probs[i]);
    for (const std::int32_t expert : chosen.experts.subspan(begin * k, count * k)) {
      ++sums.choices[static_cast<std::size_t>(expert)];
    }
  }
}

void load_balancing_gradient(const Context&, std::span<const std::int64_t> choices, double tokens, double scale,
                             std::span<float> gradient) {
  const auto experts = static_cast<double>(choices.size());
  for (std::size_t e = 0; e < gradient.size(); ++e) {
    gradient[e] = static_cast<float>(scale * experts * static_cast<double>(choices[e]) / tokens / tokens);
  }
}

}  // namespace zerofleet::cpu
