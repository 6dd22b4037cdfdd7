#include "model/objective/pair_losses.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/portable_math.h"

namespace zerofleet {
namespace {

/// log(1 + u) for u in [−½, 1]; the quotient takes back the rounding of 1 + u (Kahan).
double log_of_one_plus(double u) {
  const double sum = 1 + u;
  return sum == 1 ? u : portable::log(sum) * (u / (sum - 1));
}

/// 1 − e^l for l < 0; likewise.
double one_minus_exp(double l) {
  const double e = portable::exp(l);
  if (e == 1) return -l;
  return e < 0.5 ? 1 - e : (1 - e) * (l / portable::log(e));
}

/// −log σ(x)
double minus_log_logistic(double x) { return (x < 0 ? -x : 0) + log_of_one_plus(portable::exp(-std::abs(x))); }

/// log(p / (1 − p)) of p = e^l, and its derivative 1 / (1 − p).
struct LogOdds {
  double value, slope;
};
// Losses of tokens are fp32, so p can be 1 and its odds infinite. Nearer to 1 than their resolution, p counts as that
// far away.
LogOdds log_odds(double l) {
  constexpr double kHighest = -0x1p-24;
  const double bounded = l > kHighest ? kHighest : l, rest = one_minus_exp(bounded);
  return {bounded - portable::log(rest), 1 / rest};
}

PairLoss dpo(const ObjectiveOptions& options, const ScoredSequence& chosen, const ScoredSequence& rejected) {
  const double beta = options.beta, swapped = options.label_smoothing;
  const double x = beta * (chosen.ratio() - rejected.ratio());
  const double loss = (1 - swapped) * minus_log_logistic(x) + (swapped == 0 ? 0 : swapped * minus_log_logistic(-x));
  const double slope = beta * (swapped * logistic(x) - (1 - swapped) * logistic(-x));
  return {loss, slope, -slope, beta * chosen.ratio(), beta * rejected.ratio()};
}

PairLoss ipo(const ObjectiveOptions& options, const ScoredSequence& chosen, const ScoredSequence& rejected) {
  const double off = (chosen.mean_ratio() - rejected.mean_ratio()) - 1 / (2 * options.beta);
  return {off * off, 2 * off / chosen.num_targets, -2 * off / rejected.num_targets, options.beta * chosen.mean_ratio(),
          options.beta * rejected.mean_ratio()};
}

PairLoss orpo(const ObjectiveOptions& options, const ScoredSequence& chosen, const ScoredSequence& rejected) {
  const LogOdds of_chosen = log_odds(chosen.mean_ratio()), of_rejected = log_odds(rejected.mean_ratio());
  const double x = of_chosen.value - of_rejected.value, slope = options.beta * logistic(-x);
  return {options.beta * minus_log_logistic(x) - chosen.mean_ratio(),
          (-1 - slope * of_chosen.slope) / chosen.num_targets, slope * of_rejected.slope / rejected.num_targets,
          options.beta * chosen.mean_ratio(), options.beta * rejected.mean_ratio()};
}

PairLoss simpo(const ObjectiveOptions& options, const ScoredSequence& chosen, const ScoredSequence& rejected) {
  const double reward_chosen = options.beta * chosen.mean_ratio(),
               reward_rejected = options.beta * rejected.mean_ratio();
  const double x = (reward_chosen - reward_rejected) - options.gamma, slope = options.beta * logistic(-x);
  return {minus_log_logistic(x), -slope / chosen.num_targets, slope / rejected.num_targets, reward_chosen,
          reward_rejected};
}

}  // namespace

double logistic(double x) {
  const double e = portable::exp(-std::abs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

PairLoss pair_loss(const ObjectiveOptions& options, const ScoredSequence& chosen, const ScoredSequence& rejected) {
  switch (options.kind) {
    case ObjectiveKind::kDpo:
      return dpo(options, chosen, rejected);
    case ObjectiveKind::kIpo:
      return ipo(options, chosen, rejected);
    case ObjectiveKind::kOrpo:
      return orpo(options, chosen, rejected);
    case ObjectiveKind::kSimpo:
      return simpo(options, chosen, rejected);
    case ObjectiveKind::kKto:
      break;
  }
  throw Error("internal", "KTO has no pairs");
}

}  // namespace zerofleet
