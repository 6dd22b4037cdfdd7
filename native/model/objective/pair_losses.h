#pragma once

#include "model/objective/objective.h"

namespace zerofleet {

/// A sequence of a pair with at least one target.
struct ScoredSequence {
  double log_prob = 0;   // s
  double reference = 0;  // s', 0 without a reference
  double num_targets = 1;

  double ratio() const { return log_prob - reference; }
  double mean_ratio() const { return ratio() / num_targets; }
};

/// The loss of one pair, its derivatives by s_c and s_r, and the rewards.
struct PairLoss {
  double loss = 0, by_chosen = 0, by_rejected = 0;
  double reward_chosen = 0, reward_rejected = 0;
};

/// The formulas stand in objective.h.
PairLoss pair_loss(const ObjectiveOptions& options, const ScoredSequence& chosen, const ScoredSequence& rejected);

/// σ(x) = 1 / (1 + e^-x), with the same bits on every machine.
double logistic(double x);

}  // namespace zerofleet
