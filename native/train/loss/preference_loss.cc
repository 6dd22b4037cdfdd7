#include "train/loss/preference_loss.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "core/error.h"
#include "zero/exchange/stopwatch.h"

namespace zerofleet {
namespace {

std::optional<double> mean(double sum, std::int64_t count) {
  return count == 0 ? std::nullopt : std::optional(sum / static_cast<double>(count));
}

PreferenceMeans means_of(const ObjectiveSums& sums) {
  PreferenceMeans means;
  means.reward_chosen = mean(sums.reward_chosen, sums.num_chosen);
  means.reward_rejected = mean(sums.reward_rejected, sums.num_rejected);
  if (means.reward_chosen && means.reward_rejected) means.margin = sums.margin();
  means.accuracy = sums.accuracy();
  means.log_prob_chosen = mean(sums.log_prob_chosen, sums.num_chosen);
  means.log_prob_rejected = mean(sums.log_prob_rejected, sums.num_rejected);
  return means;
}

std::int64_t targets_of(std::span<const SequenceScore> scores) {
  std::int64_t count = 0;
  for (const SequenceScore& score : scores) count += score.num_targets;
  return count;
}

}  // namespace

PreferenceLoss::Sums& PreferenceLoss::Sums::operator+=(const Sums& other) {
  objective += other.objective;
  num_targets += other.num_targets;
  return *this;
}

PreferenceLoss::PreferenceLoss(LossParts parts, const PreferenceConfig& config)
    : parts_(std::move(parts)), objective_(config.objective), step_(parts_.leaves_of_ranks) {
  std::vector<std::int64_t> sizes;
  for (std::size_t number = 0; number < num_files(); ++number) {
    const std::int64_t size = file(number).num_sequences();
    if (is_labelled()) others_.emplace_back(file(number));
    sizes.insert(sizes.end(), is_labelled() ? 2 : 1, size);
  }
  if (config.reference == ReferenceKind::kBase) reference_ = std::make_unique<BaseReference>(parts_.model);
  if (config.reference != ReferenceKind::kInitial) return;
  auto stored = std::make_unique<StoredReference>(sizes);
  stored_ = stored.get();
  reference_ = std::move(stored);
}

const SequenceReader& PreferenceLoss::file(std::size_t number) const {
  return number == 0 ? parts_.batches.sequences() : parts_.evaluation[number - 1];
}

std::size_t PreferenceLoss::table_of(std::size_t file, bool is_mismatched) const {
  return file * (is_labelled() ? 2 : 1) + (is_mismatched ? 1 : 0);
}

PreferenceLoss::Inputs PreferenceLoss::inputs_of(std::size_t number, const LeafBatch& batch) {
  Inputs inputs;
  if (reference_) inputs.reference = reference_->log_probs({input_of(batch), table_of(number, false), batch.sequences});
  if (!is_labelled()) return inputs;
  for (const std::int64_t sequence : batch.sequences) {
    inputs.desirable.push_back(sequence != kNoSequence && file(number).label(sequence) ? 1 : 0);
  }
  inputs.kl = kl_of(number, batch);
  return inputs;
}

double PreferenceLoss::kl_of(std::size_t number, const LeafBatch& batch) {
  const MismatchedLeaf leaf = mismatched(number, batch);
  const std::vector<double> reference = reference_->log_probs({leaf.input(), table_of(number, true), batch.sequences});
  return kl_estimate(parts_.model.scores(leaf.input()), reference);
}

MismatchedLeaf PreferenceLoss::mismatched(std::size_t number, const LeafBatch& batch) {
  const SequenceReader& sequences = file(number);
  sequences.resize(completions_, parts_.leaf_sequences);
  for (std::int64_t row = 0; row < parts_.leaf_sequences; ++row) {
    const std::int64_t sequence = batch.sequences[static_cast<std::size_t>(row)];
    const std::int64_t other = sequence == kNoSequence ? kNoSequence : others_[number].completion_of(sequence);
    if (other == kNoSequence) {
      sequences.clear(row, completions_);
    } else {
      sequences.read(other, row, completions_);
    }
  }
  return mismatched_leaf(input_of(batch), input_of(completions_), parts_.leaf_sequences);
}

LeafLoss PreferenceLoss::run_leaf(const LeafBatch& batch, const LeafKey& key, const GradScale& scale, GradSink& sink) {
  const Stopwatch scoring;
  const Inputs inputs = inputs_of(0, batch);
  const double scoring_seconds = scoring.seconds();
  Sums& sums = step_.leaf(static_cast<std::int64_t>(key.leaf)).front();
  const SequenceObjective objective = [&](std::span<const SequenceScore> scores) {
    ObjectiveResult result = zerofleet::evaluate(objective_, scores, inputs.leaf());
    sums = {result.sums, targets_of(scores)};
    return std::move(result.factors);
  };
  Transformer& model = parts_.model;
  const LeafResult result = model.forward_backward(input_of(batch, key), objective, scale, sink);
  return {sums.objective.loss, sums.objective.num_units, result.aux_loss, scoring_seconds + model.forward_seconds(),
          model.backward_seconds()};
}

PreferenceLoss::Sums PreferenceLoss::sum_of(LeafTable<Sums>& leaves) {
  Sums sum;
  for (std::int64_t leaf = 0; leaf < leaves.num_leaves(); ++leaf) sum += leaves.leaf(leaf).front();
  return sum;
}

StepReport PreferenceLoss::end_step(std::int64_t num_counted) {
  step_.exchange(parts_.ranks.world);
  const Sums sum = sum_of(step_);
  require(sum.objective.num_units == num_counted, "internal",
          "the objective's units are not those that the optimizer counted");
  return {sum.num_targets, means_of(sum.objective)};
}

EvalResult PreferenceLoss::evaluate(std::size_t number) {
  const SequenceReader& sequences = parts_.evaluation[number];
  auto leaves = map_leaves<Sums>(sequences, parts_.leaf_sequences, parts_.ranks, parts_.batch, 1,
                                 [&](const LeafBatch& batch, std::span<Sums> sums) {
                                   const Inputs inputs = inputs_of(number + 1, batch);
                                   const std::vector<SequenceScore> scores = parts_.model.scores(input_of(batch));
                                   sums.front() = {zerofleet::evaluate(objective_, scores, inputs.leaf()).sums,
                                                   targets_of(scores)};
                                 });
  const Sums sum = sum_of(leaves);
  require(sum.objective.num_units > 0, "no_targets", "no token of the evaluation data counts as a target");
  return {sum.objective.loss / static_cast<double>(sum.objective.num_units), sum.num_targets, sequences.num_sequences(),
          means_of(sum.objective)};
}

std::vector<double> PreferenceLoss::compute_reference() {
  std::vector<double> log_probs;
  if (stored_ == nullptr) return log_probs;
  for (std::size_t number = 0; number < num_files(); ++number) {
    append_reference(number, false, log_probs);
    if (is_labelled()) append_reference(number, true, log_probs);
  }
  stored_->set(log_probs);
  return log_probs;
}

void PreferenceLoss::append_reference(std::size_t number, bool is_mismatched, std::vector<double>& log_probs) {
  const std::int64_t num_sequences = file(number).num_sequences();
  auto leaves = map_leaves<double>(file(number), parts_.leaf_sequences, parts_.ranks, parts_.batch,
                                   parts_.leaf_sequences, [&](const LeafBatch& batch, std::span<double> scores) {
                                     const MismatchedLeaf other =
                                         is_mismatched ? mismatched(number, batch) : MismatchedLeaf{};
                                     const LeafInput input = is_mismatched ? other.input() : input_of(batch);
                                     std::ranges::copy(log_probs_of(parts_.model.scores(input)), scores.begin());
                                   });
  for (std::int64_t sequence = 0; sequence < num_sequences; ++sequence) {
    log_probs.push_back(
        leaves.leaf(sequence / parts_.leaf_sequences)[static_cast<std::size_t>(sequence % parts_.leaf_sequences)]);
  }
}

void PreferenceLoss::set_reference(std::vector<double> log_probs) {
  if (stored_ == nullptr) return TrainingLoss::set_reference(std::move(log_probs));
  stored_->set(std::move(log_probs));
}

}  // namespace zerofleet
