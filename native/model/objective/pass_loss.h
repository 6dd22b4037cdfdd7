#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/objective/objective.h"

namespace zerofleet {

// Losses of a training session's passes, sums over targets. Here p is the probability of a target, w its weight, A its
// advantage, and q the probability under the model that drew it. The ratio is r = p / q, and
// clip(r) = min(max(r, 1 − clip_low), 1 + clip_high).
//
// - cross entropy: −w ln p
// - importance sampling: −r A
// - PPO (Schulman 2017; in TRL the loss of GRPO): −min(r A, clip(r) A)
// - CISPO (MiniMax-M1 2025): −clip(r) A ln p, where clip(r) is a constant for the gradient
// - DPO: that of objective.h over the rows 2i (chosen) and 2i + 1 (rejected), with ln q of the reference
//
// The three losses with a ratio may have a penalty of the distance from the base: β w r k3, where b is the probability
// under the base and k3 = b / p − ln(b / p) − 1 estimates the KL divergence (Schulman 2020). With the factor r its
// gradient has no bias (DeepSeek-V3.2 2025; in TRL the penalty of GRPO).
enum class PassLossKind : std::uint8_t { kCrossEntropy, kImportanceSampling, kPpo, kCispo, kDpo };

struct PassLoss {
  PassLossKind kind = PassLossKind::kCrossEntropy;
  double clip_low = 0, clip_high = 0;  // PPO and CISPO
  double beta = 0;                     // DPO; of the others the factor of the penalty, 0: none

  template <class Fields>
  void fields(Fields& field) {
    field("type", kind,
          {{"cross_entropy", PassLossKind::kCrossEntropy},
           {"importance_sampling", PassLossKind::kImportanceSampling},
           {"ppo", PassLossKind::kPpo},
           {"cispo", PassLossKind::kCispo},
           {"dpo", PassLossKind::kDpo}});
    field.if_present("clip_low", clip_low);
    field.if_present("clip_high", clip_high);
    field.if_present("beta", beta);
  }

  bool has_pairs() const { return kind == PassLossKind::kDpo; }
  bool has_clipping() const { return kind == PassLossKind::kPpo || kind == PassLossKind::kCispo; }
  bool has_ratio() const { return has_clipping() || kind == PassLossKind::kImportanceSampling; }
  bool has_penalty() const { return has_ratio() && beta != 0; }
  bool reads_weights() const { return kind == PassLossKind::kCrossEntropy || has_penalty(); }
  bool reads_log_probs() const { return kind != PassLossKind::kCrossEntropy; }
  bool reads_advantages() const { return has_ratio(); }
};

/// Throws Error{"invalid_argument"} for what cannot be.
void validate(const PassLoss& loss);

/// What a loss reads of a leaf of B rows of T tokens besides the model's log-probabilities; (B, T) each, or empty where
/// the loss does not read it.
struct PassLeaf {
  std::int64_t length = 0;                // T
  std::span<const std::int32_t> targets;  // -100: none
  std::span<const float> weights = {};    // empty: 1
  std::span<const float> log_probs = {};  // ln q
  std::span<const float> advantages = {};
  std::span<const float> base_log_probs = {};  // ln b, for a penalty
};

struct PassSums {
  double loss = 0;
  std::int64_t num_targets = 0;
  double ratio = 0;              // of targets
  std::int64_t num_clipped = 0;  // targets that clipping changes: in PPO those without a gradient
  double kl = 0;                 // r k3 of targets
  ObjectiveSums pairs;

  PassSums& operator+=(const PassSums& other);
};

struct PassLossResult {
  PassSums sums;
  std::vector<double> derivatives;  // (B, T) d sums.loss / d ln p; 0 where there is no target
};

/// log_probs: (B, T) ln p of the targets. Targets are added in their order, in fp64 and with the same bits on every
/// machine. Throws Error{"invalid_argument"} where one row alone of a pair has targets.
PassLossResult evaluate(const PassLoss& loss, std::span<const float> log_probs, const PassLeaf& leaf);

}  // namespace zerofleet
