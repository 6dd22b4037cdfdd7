#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/grad_sink.h"
#include "data/batch_source.h"
#include "model/transformer/transformer.h"
#include "train/loss/file_leaves.h"
#include "train/loss/preference_config.h"

namespace zerofleet {

/// Means of a preference objective (model/objective/objective.h). A mean over kinds of sequences that a batch lacks is
/// none, which KTO's batches allow.
struct PreferenceMeans {
  std::optional<double> reward_chosen, reward_rejected, margin;
  double accuracy = 0;
  std::optional<double> log_prob_chosen, log_prob_rejected;
  friend bool operator==(const PreferenceMeans&, const PreferenceMeans&) = default;
};

/// Result of a leaf. The counted items are targets, or units of a preference objective.
struct LeafLoss {
  double loss_sum = 0;
  std::int64_t num_counted = 0;
  double aux_loss = 0;
  double forward_seconds = 0, backward_seconds = 0;
};

/// Report of a step, in addition to the optimizer's summary.
struct StepReport {
  std::int64_t num_targets = 0;
  std::optional<PreferenceMeans> preference;
};

struct EvalResult {
  double loss = 0;  // mean over the counted items
  std::int64_t num_targets = 0;
  std::int64_t num_sequences = 0;
  std::optional<PreferenceMeans> preference;
};

/// The components of a trainer that a loss uses. They must outlive the loss.
struct LossParts {
  Transformer& model;
  const BatchSource& batches;
  const std::vector<SequenceReader>& evaluation;  // by evaluation
  FileRanks ranks;
  LeafBatch& batch;  // scratch memory for one leaf
  std::int64_t leaf_sequences;
  std::vector<std::vector<std::int64_t>> leaves_of_ranks;  // in a step
};

/// The loss that a training minimizes: the mean over the counted items of a step.
///
/// All results except those of a leaf are equal on every rank and do not depend on the number of ranks. Methods marked
/// *collective* must be called on every rank at once; they throw errors of the communicator.
class TrainingLoss {
 public:
  virtual ~TrainingLoss() = default;

  /// Number of counted items in all leaves of a step.
  virtual std::int64_t num_counted(std::int64_t step) const = 0;
  /// Computes one leaf of the step, and passes the gradients of scale.loss · loss_sum + scale.aux_loss · aux_loss to
  /// the sink.
  virtual LeafLoss run_leaf(const LeafBatch& batch, const LeafKey& key, const GradScale& scale, GradSink& sink) = 0;
  /// Ends a step with `num_counted` items in all its leaves. Collective.
  virtual StepReport end_step(std::int64_t num_counted) = 0;
  /// Returns the loss of an evaluation file with the current parameters. Leaves are consecutive sequences. Collective.
  /// Throws Error{"no_targets"} if nothing counts.
  virtual EvalResult evaluate(std::size_t file) = 0;

  /// Computes the log-probabilities under the initial model that this loss needs, with the current parameters; empty
  /// for most losses. Collective.
  virtual std::vector<double> compute_reference() { return {}; }
  /// Throws Error{"invalid_argument"} for a wrong number of log-probabilities.
  virtual void set_reference(std::vector<double> log_probs);
};

/// Makes the loss of `preference`, otherwise that of the targets.
std::unique_ptr<TrainingLoss> make_training_loss(const std::optional<PreferenceConfig>& preference, LossParts parts);

/// Returns the model's input for a leaf.
LeafInput input_of(const LeafBatch& batch, const LeafKey& key = {});

}  // namespace zerofleet
