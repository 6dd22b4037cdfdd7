#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "model/objective/mismatched_leaf.h"
#include "model/objective/objective.h"
#include "train/loss/other_completions.h"
#include "train/loss/reference.h"
#include "train/loss/training_loss.h"

namespace zerofleet {

/// A preference objective (model/objective/objective.h), averaged over units. Reference scores and KTO's z are computed
/// per leaf, so a leaf's result depends on the parameters and its own sequences alone.
///
/// KTO's z pairs each prompt with the completion of another sequence (other_completions.h). It has no terms if all
/// completions of the file are equal.
class PreferenceLoss final : public TrainingLoss {
 public:
  PreferenceLoss(LossParts parts, const PreferenceConfig& config);

  std::int64_t num_counted(std::int64_t step) const override { return parts_.batches.num_units(step); }
  LeafLoss run_leaf(const LeafBatch& batch, const LeafKey& key, const GradScale& scale, GradSink& sink) override;
  StepReport end_step(std::int64_t num_counted) override;
  EvalResult evaluate(std::size_t file) override;
  std::vector<double> compute_reference() override;
  void set_reference(std::vector<double> log_probs) override;

 private:
  struct Sums {
    ObjectiveSums objective;
    std::int64_t num_targets = 0;
    Sums& operator+=(const Sums& other);
  };
  /// Inputs of the objective for a leaf, apart from the policy's scores.
  struct Inputs {
    std::vector<double> reference;
    std::vector<std::uint8_t> desirable;
    double kl = 0;
    ObjectiveLeaf leaf() const { return {reference, desirable, kl}; }
  };

  const SequenceReader& file(std::size_t number) const;
  std::size_t num_files() const { return 1 + parts_.evaluation.size(); }
  bool is_labelled() const { return !objective_.has_pairs(); }
  std::size_t table_of(std::size_t file, bool is_mismatched) const;
  Inputs inputs_of(std::size_t file, const LeafBatch& batch);
  double kl_of(std::size_t file, const LeafBatch& batch);
  MismatchedLeaf mismatched(std::size_t file, const LeafBatch& batch);
  void append_reference(std::size_t file, bool is_mismatched, std::vector<double>& log_probs);
  static Sums sum_of(LeafTable<Sums>& leaves);

  LossParts parts_;
  ObjectiveOptions objective_;
  std::vector<OtherCompletions> others_;       // KTO only, by file
  LeafBatch completions_;                      // KTO only: each row with the completion of another sequence
  LeafTable<Sums> step_;                       // this rank's leaves of the current step
  std::unique_ptr<ReferenceModel> reference_;  // null for objectives without one
  StoredReference* stored_ = nullptr;          // reference_ if it is that of the initial model
};

}  // namespace zerofleet
