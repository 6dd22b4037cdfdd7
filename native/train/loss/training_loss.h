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

/// Means of a preference objective (model/objective/objective.h); none over sequences that a batch does not have, as KTO's may.
struct PreferenceMeans {
  std::optional<double> reward_chosen, reward_rejected, margin;
  double accuracy = 0;
  std::optional<double> log_prob_chosen, log_prob_rejected;
  friend bool operator==(const PreferenceMeans&, const PreferenceMeans&) = default;
};

/// Result of a leaf. What counts are targets, or the units of a preference objective.
struct LeafLoss {
  double loss_sum = 0;
  std::int64_t num_counted = 0;
  double aux_loss = 0;
  double forward_seconds = 0, backward_seconds = 0;
};

/// Report of a step, beside the optimizer's summary.
struct StepReport {
  std::int64_t num_targets = 0;
  std::optional<PreferenceMeans> preference;
};

struct EvalResult {
  double loss = 0;               // mean over all that counts
  std::int64_t num_targets = 0;
  std::int64_t num_sequences = 0;
  std::optional<PreferenceMeans> preference;
};

/// The parts of a trainer that a loss uses; all of them must outlive the loss.
struct LossParts {
  Transformer& model;
  const BatchSource& batches;
  const std::vector<SequenceReader>& evaluation;  // one for each evaluation file
  FileRanks ranks;
  LeafBatch& batch;                               // work space for one leaf
  std::int64_t leaf_sequences;
  std::vector<std::vector<std::int64_t>> leaves_of_ranks;  // of a step
};

/// The loss that a training minimizes: the mean over all that counts in a step. Every number that it returns is equal on every
/// rank and does not depend on their number, apart from a leaf's. Methods that exchange are called on every rank at once and throw
/// errors of the communicator.
class TrainingLoss {
 public:
  virtual ~TrainingLoss() = default;

  /// How much counts in all leaves of a step.
  virtual std::int64_t num_counted(std::int64_t step) const = 0;
  /// Gives the sink the gradients of scale.loss · loss_sum + scale.aux_loss · aux_loss of the batch, which is the step's `leaf`.
  virtual LeafLoss run_leaf(const LeafBatch& batch, const LeafKey& key, const GradScale& scale, GradSink& sink) = 0;
  /// Ends a step of so much that counts in all leaves.
  virtual StepReport end_step(std::int64_t num_counted) = 0;
  /// The loss of an evaluation file with the parameters as they are. Leaves are consecutive sequences. Exchanges. Throws
  /// Error{"no_targets"} where nothing counts.
  virtual EvalResult evaluate(std::size_t file) = 0;

  /// Computes the log-probabilities under the initial model that this loss needs before anything else, with the parameters as
  /// they are; none for most. Exchanges.
  virtual std::vector<double> compute_reference() { return {}; }
  /// Throws Error{"invalid_argument"} for another number of them.
  virtual void set_reference(std::vector<double> log_probs);
};

/// The loss of a preference objective, or of the targets.
std::unique_ptr<TrainingLoss> make_training_loss(const std::optional<PreferenceConfig>& preference, LossParts parts);

/// The model's input of a leaf.
LeafInput input_of(const LeafBatch& batch, const LeafKey& key = {});

}  // namespace zerofleet
