#include "kernels/moe/moe_router.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/common/backend.h"

namespace zerofleet {
namespace {

void check(const ConstMatrix& logits, std::int64_t chosen, std::size_t probs, std::size_t experts,
           std::size_t weights) {
  const auto is = [](std::size_t size, std::int64_t count) { return static_cast<std::int64_t>(size) == count; };
  require(logits.data != nullptr && logits.cols >= 1 && chosen >= 1 && chosen <= logits.cols, "invalid_argument",
          "router: " + std::to_string(chosen) + " experts per token of " + std::to_string(logits.cols));
  require(
      is(probs, logits.rows * logits.cols) && is(experts, logits.rows * chosen) && is(weights, logits.rows * chosen),
      "invalid_argument", "router: logits, probs, experts and weights do not fit each other");
}

/// Throws unless `lengths` are of sequences that make up `tokens` tokens, or empty.
void check_lengths(const Indices& lengths, std::int64_t tokens) {
  if (lengths.empty()) return;
  const auto sequences = static_cast<std::int64_t>(lengths.size());
  require(tokens % sequences == 0 &&
              std::ranges::all_of(lengths,
                                  [&](std::int32_t length) { return length >= 0 && length <= tokens / sequences; }),
          "invalid_argument", "router: the lengths do not fit " + std::to_string(tokens) + " tokens");
}

}  // namespace

void route(const Context& ctx, const RouterForward& args) {
  check(args.logits, args.experts_per_token, args.probs.size(), args.experts.size(), args.weights.size());
  backend_of(ctx).route(ctx, args);
}

void route_backward(const Context& ctx, const RouterBackward& args) {
  check(args.dlogits, args.experts_per_token, args.probs.size(), args.experts.size(), args.dweights.size());
  require(args.dprobs.empty() || std::ssize(args.dprobs) == args.dlogits.cols, "invalid_argument",
          "router: dprobs needs one element per expert");
  check_lengths(args.lengths, args.dlogits.rows);
  backend_of(ctx).route_backward(ctx, args);
}

double load_balancing_loss(const RouterLoad& load) {
  if (load.num_tokens == 0) return 0;
  const auto tokens = static_cast<double>(load.num_tokens);
  double sum = 0;
  for (std::size_t e = 0; e < load.probs.size(); ++e) {
    sum += static_cast<double>(load.choices[e]) / tokens * (load.probs[e] / tokens);
  }
  return sum * static_cast<double>(load.probs.size());
}

void add_router_load(const Context& ctx, const RouterChoices& chosen, const RouterSums& sums) {
  const std::int64_t num_experts = std::ssize(sums.probs);
  require(num_experts > 0 && std::ssize(sums.choices) == num_experts && std::ssize(chosen.probs) % num_experts == 0,
          "invalid_argument", "router load: probs and sums do not fit each other");
  const std::int64_t tokens = std::ssize(chosen.probs) / num_experts;
  require(tokens == 0 ? chosen.experts.empty() : std::ssize(chosen.experts) % tokens == 0, "invalid_argument",
          "router load: probs and experts do not fit each other");
  check_lengths(chosen.lengths, tokens);
  backend_of(ctx).add_router_load(ctx, chosen, sums);
}

void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t> choices, std::int64_t num_tokens,
                             double scale, std::span<float> gradient) {
  require(choices.size() == gradient.size(), "invalid_argument", "router load: choices and gradient differ in experts");
  if (num_tokens == 0) return fill_zero(ctx, std::as_writable_bytes(gradient));
  backend_of(ctx).load_balancing_gradient(ctx, choices, static_cast<double>(num_tokens), scale, gradient);
}

}  // namespace zerofleet
