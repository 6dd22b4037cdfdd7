#include "model/objective/pass_loss.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/error.h"
#include "core/portable_math.h"

namespace zerofleet {
namespace {

/// A target's term of a loss.
struct Term {
  double loss = 0, derivative = 0;
  double ratio = 0;
  bool is_clipped = false;
  double kl = 0;
};

Term policy_term(const PassLoss& loss, double log_prob, double drawn_log_prob, double advantage) {
  const double ratio = portable::exp(log_prob - drawn_log_prob), gain = ratio * advantage;
  if (!loss.has_clipping()) return {-gain, -gain, ratio};
  const double clipped = std::clamp(ratio, 1 - loss.clip_low, 1 + loss.clip_high), clipped_gain = clipped * advantage;
  if (loss.kind == PassLossKind::kCispo) return {-clipped_gain * log_prob, -clipped_gain, ratio, clipped != ratio};
  if (clipped_gain < gain) return {-clipped_gain, 0, ratio, true};
  return {-gain, -gain, ratio};  // also where it is not a number
}

void add_penalty(Term& term, double factor, double log_prob, double base_log_prob) {
  const double difference = base_log_prob - log_prob;
  term.kl = term.ratio * (portable::exp(difference) - difference - 1);
  term.loss += factor * term.kl;
  term.derivative -= factor * term.ratio * difference;
}

Term term_of(const PassLoss& loss, double log_prob, const PassLeaf& leaf, std::size_t at) {
  const double weight = leaf.weights.empty() ? 1 : static_cast<double>(leaf.weights[at]);
  if (loss.kind == PassLossKind::kCrossEntropy) return {-weight * log_prob, -weight};
  Term term =
      policy_term(loss, log_prob, static_cast<double>(leaf.log_probs[at]), static_cast<double>(leaf.advantages[at]));
  if (loss.has_penalty()) add_penalty(term, loss.beta * weight, log_prob, static_cast<double>(leaf.base_log_probs[at]));
  return term;
}

/// Calls visit(at, row) for the position of each target.
template <class Visit>
void each_target(const PassLeaf& leaf, Visit&& visit) {
  const auto length = static_cast<std::size_t>(leaf.length);
  for (std::size_t at = 0; at < leaf.targets.size(); ++at) {
    if (leaf.targets[at] >= 0) visit(at, at / length);
  }
}

PassLossResult pairs_loss(const PassLoss& loss, std::span<const float> log_probs, const PassLeaf& leaf) {
  const std::size_t num_rows = leaf.targets.size() / static_cast<std::size_t>(leaf.length);
  std::vector<SequenceScore> scores(num_rows);
  std::vector<double> reference(num_rows);
  each_target(leaf, [&](std::size_t at, std::size_t row) {
    scores[row].log_prob += static_cast<double>(log_probs[at]);
    ++scores[row].num_targets;
    reference[row] += static_cast<double>(leaf.log_probs[at]);
  });
  const ObjectiveResult pairs = evaluate({ObjectiveKind::kDpo, loss.beta}, scores, {reference});
  PassLossResult result{{.loss = pairs.sums.loss, .pairs = pairs.sums}, std::vector<double>(leaf.targets.size())};
  each_target(leaf, [&](std::size_t at, std::size_t row) {
    result.derivatives[at] = pairs.factors[row];
    ++result.sums.num_targets;
  });
  return result;
}

bool is_at_least_zero(double value) { return std::isfinite(value) && value >= 0; }

}  // namespace

void validate(const PassLoss& loss) {
  require(!loss.has_clipping() || (is_at_least_zero(loss.clip_low) && is_at_least_zero(loss.clip_high)),
          "invalid_argument", "loss: clip_low and clip_high are at least 0");
  require(!loss.has_pairs() || loss.beta > 0, "invalid_argument", "loss: beta is a number above 0");
  require(is_at_least_zero(loss.beta), "invalid_argument", "loss: beta is at least 0");
}

PassSums& PassSums::operator+=(const PassSums& other) {
  loss += other.loss;
  num_targets += other.num_targets;
  ratio += other.ratio;
  num_clipped += other.num_clipped;
  kl += other.kl;
  pairs += other.pairs;
  return *this;
}

PassLossResult evaluate(const PassLoss& loss, std::span<const float> log_probs, const PassLeaf& leaf) {
  if (loss.has_pairs()) return pairs_loss(loss, log_probs, leaf);
  PassLossResult result{{}, std::vector<double>(leaf.targets.size())};
  each_target(leaf, [&](std::size_t at, std::size_t) {
    const Term term = term_of(loss, static_cast<double>(log_probs[at]), leaf, at);
    result.sums.loss += term.loss;
    ++result.sums.num_targets;
    result.sums.ratio += term.ratio;
    result.sums.num_clipped += term.is_clipped ? 1 : 0;
    result.sums.kl += term.kl;
    result.derivatives[at] = term.derivative;
  });
  return result;
}

}  // namespace zerofleet
