#include "model/objective/objective.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/error.h"
#include "model/objective/pair_losses.h"

namespace zerofleet {
namespace {

bool is_positive(double value) { return std::isfinite(value) && value > 0; }

void check_shapes(const ObjectiveOptions& options, std::span<const SequenceScore> policy, const ObjectiveLeaf& leaf) {
  const auto fits = [&](std::size_t count, bool is_used) { return count == (is_used ? policy.size() : 0); };
  require(fits(leaf.reference.size(), options.has_reference()), "invalid_argument",
          "an objective takes one log-probability of the reference for each sequence, or none without a reference");
  require(fits(leaf.desirable.size(), !options.has_pairs()), "invalid_argument",
          "an objective takes one label for each sequence in KTO, and none for pairs");
  require(!options.has_pairs() || policy.size() % 2 == 0, "invalid_argument",
          "a leaf of pairs has an even number of sequences, not " + std::to_string(policy.size()));
}

class Evaluation {
 public:
  Evaluation(const ObjectiveOptions& options, std::span<const SequenceScore> policy, const ObjectiveLeaf& leaf)
      : options_(options), policy_(policy), leaf_(leaf) {
    result_.factors.resize(policy.size());
  }

  void add_pair(std::size_t chosen) {
    const std::size_t rejected = chosen + 1;
    const bool has_chosen = policy_[chosen].num_targets > 0, has_rejected = policy_[rejected].num_targets > 0;
    if (!has_chosen && !has_rejected) return;
    require(has_chosen && has_rejected, "invalid_argument",
            "pair " + std::to_string(chosen / 2) + " of a leaf has a sequence without targets");
    const PairLoss pair = pair_loss(options_, sequence(chosen), sequence(rejected));
    result_.factors[chosen] = pair.by_chosen;
    result_.factors[rejected] = pair.by_rejected;
    add_unit(pair.loss, pair.reward_chosen > pair.reward_rejected);
    add_chosen(chosen, pair.reward_chosen);
    add_rejected(rejected, pair.reward_rejected);
  }

  // d/ds of λ (1 − σ(x)) with x = ±(β (s − s') − β z) is ∓ λ β σ(x) σ(−x).
  void add_labelled(std::size_t number) {
    if (policy_[number].num_targets == 0) return;
    const bool desirable = leaf_.desirable[number] != 0;
    const double reward = options_.beta * (policy_[number].log_prob - leaf_.reference[number]);
    const double sign = desirable ? 1 : -1,
                 weight = desirable ? options_.desirable_weight : options_.undesirable_weight;
    const double x = sign * (reward - options_.beta * leaf_.kl), rest = logistic(-x);
    result_.factors[number] = -sign * weight * options_.beta * logistic(x) * rest;
    add_unit(weight * rest, x > 0);
    desirable ? add_chosen(number, reward) : add_rejected(number, reward);
  }

  ObjectiveResult take() { return std::move(result_); }

 private:
  ScoredSequence sequence(std::size_t number) const {
    const SequenceScore& score = policy_[number];
    return {score.log_prob, options_.has_reference() ? leaf_.reference[number] : 0,
            static_cast<double>(score.num_targets)};
  }

  void add_unit(double loss, bool is_correct) {
    result_.sums.loss += loss;
    ++result_.sums.num_units;
    if (is_correct) ++result_.sums.num_correct;
  }
  void add_chosen(std::size_t number, double reward) {
    ++result_.sums.num_chosen;
    result_.sums.reward_chosen += reward;
    result_.sums.log_prob_chosen += policy_[number].log_prob;
  }
  void add_rejected(std::size_t number, double reward) {
    ++result_.sums.num_rejected;
    result_.sums.reward_rejected += reward;
    result_.sums.log_prob_rejected += policy_[number].log_prob;
  }

  const ObjectiveOptions& options_;
  std::span<const SequenceScore> policy_;
  const ObjectiveLeaf& leaf_;
  ObjectiveResult result_;
};

}  // namespace

void validate(const ObjectiveOptions& options) {
  const auto check = [](bool holds, const char* what) { require(holds, "invalid_argument", what); };
  check(is_positive(options.beta), "objective: beta is a number above 0");
  check(options.label_smoothing >= 0 && options.label_smoothing < 0.5,
        "objective: label_smoothing is at least 0 and below 0.5");
  check(std::isfinite(options.gamma) && options.gamma >= 0, "objective: gamma is at least 0");
  check(is_positive(options.desirable_weight) && is_positive(options.undesirable_weight),
        "objective: weights of labels are above 0");
  check(options.kind == ObjectiveKind::kDpo || options.label_smoothing == 0,
        "objective: label_smoothing is a setting of DPO; leave it 0");
  check(options.kind == ObjectiveKind::kSimpo || options.gamma == 0,
        "objective: gamma is a setting of SimPO; leave it 0");
  check(options.kind == ObjectiveKind::kKto || (options.desirable_weight == 1 && options.undesirable_weight == 1),
        "objective: weights of labels are settings of KTO; leave them 1");
}

ObjectiveSums& ObjectiveSums::operator+=(const ObjectiveSums& other) {
  loss += other.loss;
  num_units += other.num_units;
  num_chosen += other.num_chosen;
  num_rejected += other.num_rejected;
  num_correct += other.num_correct;
  reward_chosen += other.reward_chosen;
  reward_rejected += other.reward_rejected;
  log_prob_chosen += other.log_prob_chosen;
  log_prob_rejected += other.log_prob_rejected;
  return *this;
}

double ObjectiveSums::accuracy() const {
  return num_units == 0 ? 0 : static_cast<double>(num_correct) / static_cast<double>(num_units);
}

double ObjectiveSums::margin() const {
  if (num_chosen == 0 || num_rejected == 0) return 0;
  return reward_chosen / static_cast<double>(num_chosen) - reward_rejected / static_cast<double>(num_rejected);
}

ObjectiveResult evaluate(const ObjectiveOptions& options, std::span<const SequenceScore> policy,
                         const ObjectiveLeaf& leaf) {
  validate(options);
  check_shapes(options, policy, leaf);
  Evaluation evaluation(options, policy, leaf);
  if (options.has_pairs()) {
    for (std::size_t chosen = 0; chosen < policy.size(); chosen += 2) evaluation.add_pair(chosen);
  } else {
    for (std::size_t number = 0; number < policy.size(); ++number) evaluation.add_labelled(number);
  }
  return evaluation.take();
}

double kl_estimate(std::span<const SequenceScore> policy, std::span<const double> reference) {
  require(policy.size() == reference.size(), "invalid_argument",
          "kl_estimate takes one log-probability of the reference for each sequence");
  double sum = 0, count = 0;
  for (std::size_t number = 0; number < policy.size(); ++number) {
    if (policy[number].num_targets == 0) continue;
    sum += policy[number].log_prob - reference[number];
    ++count;
  }
  const double mean = count == 0 ? 0 : sum / count;
  return mean < 0 ? 0 : mean;  // NaN stays NaN
}

}  // namespace zerofleet
