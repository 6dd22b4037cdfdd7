#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "kernels/common/indices.h"
#include "kernels/common/matrix.h"

namespace zerofleet {

/// Chooses experts for each of M tokens: softmax over all E experts in fp32, then the k largest probabilities. Of equal
/// probabilities the lower index is first. The weights are the chosen probabilities, or their shares of their sum. All
/// spans lie in memory of the context's device.
struct RouterForward {
  ConstMatrix logits;               // (M, E)
  std::int64_t experts_per_token;   // k
  std::span<float> probs;           // (M, E)
  std::span<std::int32_t> experts;  // (M, k) best first
  std::span<float> weights;         // (M, k)
  bool shares = true;               // the weights' sum is 1
};

/// The gradient through weights and softmax; the choice itself has none.
struct RouterBackward {
  std::int64_t experts_per_token;
  std::span<const float> probs;           // (M, E) of the forward
  std::span<const std::int32_t> experts;  // (M, k) of the forward
  std::span<const float> dweights;        // (M, k)
  std::span<const float> dprobs;          // (E) of the probabilities of every token that counts, or empty
  Matrix dlogits;                         // (M, E)
  Indices lengths = {};                   // which tokens count, as in RouterChoices
  bool shares = true;                     // of the forward
};

/// Both throw Error{"invalid_argument"} where sizes do not fit.
void route(const Context& ctx, const RouterForward& args);
void route_backward(const Context& ctx, const RouterBackward& args);

/// Choices of route() for the M tokens of B sequences.
struct RouterChoices {
  std::span<const float> probs;           // (M, E)
  std::span<const std::int32_t> experts;  // (M, k)
  Indices lengths = {};                   // (B) how many tokens of each sequence count, the first ones; empty: all do
};

/// Terms of a leaf's auxiliary loss, added up over the tokens that count in its layers.
struct RouterLoad {
  std::vector<std::int64_t> choices;  // (E) how often each expert was chosen
  std::vector<double> probs;          // (E) sum of its probabilities
  std::int64_t num_tokens = 0;        // that count, over all layers
};

/// E · Σ over experts of (choices / tokens) · (mean probability), as load_balancing_loss_func of transformers' Mixtral
/// has it, where its attention mask leaves out the tokens that do not count. 0 without tokens.
double load_balancing_loss(const RouterLoad& load);

/// A load where the routers run: in memory of the context's device, zeros at first.
struct RouterSums {
  std::span<std::int64_t> choices;  // (E)
  std::span<double> probs;          // (E)
};

/// Adds one layer's tokens, on a CPU in rising order.
void add_router_load(const Context& ctx, const RouterChoices& chosen, const RouterSums& sums);

/// The gradient of scale · load_balancing_loss with respect to each probability of an expert, for
/// RouterBackward::dprobs. It is the same for all counted tokens and all layers. choices, gradient: (E) on the
/// context's device. Without tokens it is 0.
void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t> choices, std::int64_t num_tokens,
                             double scale, std::span<float> gradient);

// Both throw Error{"invalid_argument"} where sizes do not fit.

}  // namespace zerofleet
