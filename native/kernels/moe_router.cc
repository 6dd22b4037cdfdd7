#include "kernels/moe_router.h"

#include <iterator>
#include <string>

#include "core/error.h"
#include "kernels/cpu/launch.h"
#include "kernels/cuda/model_launch.h"

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
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::route_backward(ctx, args);
    case DeviceKind::kCuda: return cuda::route_backward(ctx, args);
  }
}

void RouterLoad::add(std::span<const float> layer_probs, std::span<const std::int32_t> layer_experts) {
  const std::size_t num_experts = probs.size();
  require(num_experts >= 1 && layer_probs.size() % num_experts == 0, "invalid_argument",
          "router load: probs are not whole rows of experts");
  check_experts(layer_experts, std::ssize(probs));
  for (std::size_t i = 0; i < layer_probs.size(); ++i) probs[i % num_experts] += static_cast<double>(layer_probs[i]);
  for (const std::int32_t expert : layer_experts) ++choices[static_cast<std::size_t>(expert)];
  num_tokens += static_cast<std::int64_t>(layer_probs.size() / num_experts);
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

std::vector<float> load_balancing_gradient(const RouterLoad& load, double scale) {
  std::vector<float> gradient(load.probs.size());
  if (load.num_tokens == 0) return gradient;
  const auto tokens = static_cast<double>(load.num_tokens), experts = static_cast<double>(load.probs.size());
  for (std::size_t e = 0; e < gradient.size(); ++e) {
    gradient[e] = static_cast<float>(scale * experts * static_cast<double>(load.choices[e]) / tokens / tokens);
  }
  return gradient;
}

}  // namespace zerofleet
