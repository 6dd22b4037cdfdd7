#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/context.h"
#include "kernels/matrix.h"

namespace zerofleet {

/// Chooses experts for each of M tokens: softmax over all E experts in fp32, then the k experts with the largest
/// probabilities (of equal ones that with the lower index), weighted by their probabilities' shares of their sum.
/// All spans lie in memory of the context's device: who groups tokens by expert copies the choices to the host first.
struct RouterForward {
  ConstMatrix logits;               // (M, E)
  std::int64_t experts_per_token;   // k
  std::span<float> probs;           // (M, E)
  std::span<std::int32_t> experts;  // (M, k) best first
  std::span<float> weights;         // (M, k) of sum 1
};

/// The gradient through weights and softmax; the choice itself has none.
struct RouterBackward {
  std::int64_t experts_per_token;
  std::span<const float> probs;           // (M, E) of the forward
  std::span<const std::int32_t> experts;  // (M, k) of the forward
  std::span<const float> dweights;        // (M, k)
  std::span<const float> dprobs;          // (E) of every token's probabilities, from the auxiliary loss; or empty
  Matrix dlogits;                         // (M, E)
};

/// Both throw Error{"invalid_argument"} where sizes do not fit.
void route(const Context& ctx, const RouterForward& args);
void route_backward(const Context& ctx, const RouterBackward& args);

/// What the auxiliary loss of a leaf is made of, added up over its layers.
struct RouterLoad {
  explicit RouterLoad(std::int64_t num_experts)
      : choices(static_cast<std::size_t>(num_experts)), probs(static_cast<std::size_t>(num_experts)) {}

  /// Adds one layer's tokens, in rising order. probs: (M, E), experts: (M, k), of the forward.
  /// Throws Error{"invalid_argument"} where sizes do not fit or an expert is outside [0, E).
  void add(std::span<const float> layer_probs, std::span<const std::int32_t> layer_experts);

  std::vector<std::int64_t> choices;  // (E) how often each expert was chosen
  std::vector<double> probs;          // (E) sum of its probabilities
  std::int64_t num_tokens = 0;        // over all layers
};

/// E · Σ over experts of (choices / tokens) · (mean probability), as load_balancing_loss_func of transformers' Mixtral.
/// 0 without tokens.
double load_balancing_loss(const RouterLoad& load);

/// (E) the gradient of scale · load_balancing_loss with respect to each probability of an expert: it is the same for
/// all tokens and layers, for RouterBackward::dprobs.
std::vector<float> load_balancing_gradient(const RouterLoad& load, double scale);

}  // namespace zerofleet
