#include "kernels/moe/moe_router.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "core/device/transfer.h"
#include "core/error.h"
#include "kernels/moe/cpu/launch.h"
#include "kernels/moe/cuda/launch.h"

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
  require(tokens % sequences == 0 && std::ranges::all_of(lengths, [&](std::int32_t length) {
            return length >= 0 && length <= tokens / sequences;
          }),
          "invalid_argument", "router: the lengths do not fit " + std::to_string(tokens) + " tokens");
}

void check_experts(std::span<const std::int32_t> experts, std::int64_t num_experts) {
  for (const std::int32_t expert : experts) {
    require(expert >= 0 && expert < num_experts, "invalid_argument",
            "router: expert " + std::to_string(expert) + " of " + std::to_string(num_experts));
  }
}

}  // namespace

void route(const Context& ctx, const RouterForward& args) {
  check(args.logits, args.experts_per_token, args.probs.size(), args.experts.size(), args.weights.size());
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::route(ctx, args);
    case DeviceKind::kCuda: return cuda::route(ctx, args);
  }
}

void route_backward(const Context& ctx, const RouterBackward& args) {
  check(args.dlogits, args.experts_per_token, args.probs.size(), args.experts.size(), args.dweights.size());
  if (ctx.device.kind == DeviceKind::kCpu) check_experts(args.experts, args.dlogits.cols);  // elsewhere the host sees none
  require(args.dprobs.empty() || std::ssize(args.dprobs) == args.dlogits.cols, "invalid_argument",
          "router: dprobs needs one element per expert");
  check_lengths(args.lengths, args.dlogits.rows);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::route_backward(ctx, args);
    case DeviceKind::kCuda: return cuda::route_backward(ctx, args);
  }
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

namespace {

void add_on_cpu(const RouterChoices& chosen, const RouterSums& sums) {
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

void gradient_on_cpu(std::span<const std::int64_t> choices, double tokens, double scale, std::span<float> gradient) {
  const auto experts = static_cast<double>(choices.size());
  for (std::size_t e = 0; e < gradient.size(); ++e) {
    gradient[e] = static_cast<float>(scale * experts * static_cast<double>(choices[e]) / tokens / tokens);
  }
}

}  // namespace

void add_router_load(const Context& ctx, const RouterChoices& chosen, const RouterSums& sums) {
  const std::int64_t num_experts = std::ssize(sums.probs);
  require(num_experts > 0 && std::ssize(sums.choices) == num_experts && std::ssize(chosen.probs) % num_experts == 0,
          "invalid_argument", "router load: probs and sums do not fit each other");
  const std::int64_t tokens = std::ssize(chosen.probs) / num_experts;
  require(tokens == 0 ? chosen.experts.empty() : std::ssize(chosen.experts) % tokens == 0, "invalid_argument",
          "router load: probs and experts do not fit each other");
  check_lengths(chosen.lengths, tokens);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu:
      check_experts(chosen.experts, num_experts);
      return add_on_cpu(chosen, sums);
    case DeviceKind::kCuda: return cuda::add_router_load(ctx, chosen, sums);
  }
}

void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t> choices, std::int64_t num_tokens,
                             double scale, std::span<float> gradient) {
  require(choices.size() == gradient.size(), "invalid_argument", "router load: choices and gradient differ in experts");
  if (num_tokens == 0) return fill_zero(ctx, std::as_writable_bytes(gradient));
  const auto tokens = static_cast<double>(num_tokens);
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return gradient_on_cpu(choices, tokens, scale, gradient);
    case DeviceKind::kCuda: return cuda::load_balancing_gradient(ctx, choices, tokens, scale, gradient);
  }
}

}  // namespace zerofleet
