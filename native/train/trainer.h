#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/counting_comm.h"
#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"
#include "data/batch_source.h"
#include "model/transformer/transformer.h"
#include "train/expert_rows_comm.h"
#include "train/loss/training_loss.h"
#include "train/norm_init.h"
#include "train/trainer_comms.h"
#include "train/trainer_config.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet {

/// Wall seconds of one step by phase; they overlap where communication hides behind backward.
struct StepSeconds {
  double total = 0, data = 0, forward = 0, backward = 0, exchange = 0, optimizer = 0, gather = 0;
  double exchange_busy = 0;  // of the communication thread on gradients; `exchange` is the step's wait
};

struct StepResult {
  std::int64_t step = 0;  // steps done, this one included
  double loss = 0;        // mean over the global batch, before the update: nats a target, or a preference objective
  std::optional<PreferenceMeans> preference;  // none without a preference objective
  std::optional<double> aux_loss;  // of routers, times its factor, mean over leaves; not in `loss`; none where the factor is 0
  double grad_norm = 0;   // before clipping
  double lr = 0;
  double loss_scale = 1;  // factor of the loss; `loss` and `grad_norm` are without it
  std::vector<TrustRatios> trust_ratios;  // as in StepSummary
  std::int64_t num_targets = 0;
  bool finite = true;  // false: the update was skipped
  std::int64_t skipped_steps = 0;
  std::uint32_t flags = 0;  // OR of the flags of all ranks
  StepSeconds seconds;
  SentBytes sent;  // by this rank
};

/// A place in the optimizer state: elements of one parameter, padding left out.
using OwnedSlice = StateRange;

/// Progress of a training, apart from its tensors, as a checkpoint stores it. Equal on all ranks.
struct TrainingPosition {
  std::int64_t step = 0;             // steps done, skipped ones included
  std::int64_t optimizer_steps = 0;  // updates applied
  std::int64_t skipped_steps = 0;
  LossScalerState loss_scaler;
};

/// Bytes that this rank has allocated for one purpose.
struct MemoryPart {
  const char* name = "";
  std::size_t num_bytes = 0;
};

/// A rank's training loop over the components: batches → model → ZeRO optimizer. Between steps it is the state after
/// `steps_done()` steps; a rank of another world size that loads the same state goes on with the same bits. Not
/// thread-safe: one call at a time. Errors of the communicator leave the object fit for destruction only.
class Trainer {
 public:
  /// Throws what validate() does; Error{"invalid_argument"} where the communicators are not those of the configuration's
  /// rank, world and expert sets.
  Trainer(const TrainerConfig& config, TrainerComms comms);
  /// Waits for no other rank.
  ~Trainer() { abort(); }

  /// Fresh parameters from the seed, from parameter `first` on; a load must follow where that is not 0.
  void initialize(std::size_t first = 0);

  /// The base of adapters as a training with this seed begins; finish_load() must follow.
  void initialize_base(std::uint64_t seed);

  /// Slices of the state that this rank owns, in canonical parameter order; and those of the base of adapters, which is no
  /// part of the state.
  std::vector<OwnedSlice> slices();
  std::vector<OwnedSlice> base_slices();

  /// Fills owned elements of one state from `begin`. Throws Error{"slice_not_owned"} where they are not this rank's.
  void load(StateId state, std::size_t param, std::int64_t begin, std::span<const float> values);

  /// After all loads, on every rank: sets the place in training and rebuilds the compute parameters from the master.
  /// `restore` decides which fields of the position apply to the optimizer.
  void finish_load(const TrainingPosition& position, Restore restore);

  /// Throws Error{"diverged"} on every rank alike when the loss scaler finds that training cannot go on.
  StepResult step(std::uint32_t flags);

  /// Computes the log-probabilities under the initial model that some preference objectives need before the first step or evaluation,
  /// with the parameters as they are: those of all sequences of all files, equal on every rank; none for other trainings. On every rank
  /// at once.
  std::vector<double> compute_reference() { return loss_->compute_reference(); }
  /// Takes those that a trainer of the same training has computed. Throws Error{"invalid_argument"} for another number of them.
  void set_reference(std::vector<double> log_probs) { loss_->set_reference(std::move(log_probs)); }

  /// The loss of one of the configuration's evaluation files with the parameters as they are; changes nothing. On every
  /// rank at once. Throws Error{"no_evaluation_data"} where the configuration has no such file, and Error{"no_targets"}.
  EvalResult evaluate(std::size_t file);

  /// Rate of the next step: that of the configuration's overrides, else the schedule's.
  double lr() const;

  /// This rank's share of the state digest; the sum over ranks mod 2^128 is the job's.
  Digest128 digest_part();
  /// Likewise of the base of adapters.
  Digest128 base_digest_part();

  /// Copies the owned state, in the order of slices(), to the start of `target`, which must hold owned_bytes().
  void copy_state(std::span<std::byte> target);
  std::size_t owned_bytes();

  /// Makes waits for other ranks, now and later, fail with "comm_failed". From any thread.
  void abort();

  const TrainerConfig& config() const { return config_; }
  const std::vector<ParamSpec>& params() const { return specs_; }
  TrainingPosition position() const;

  /// params, grad_shard, master, moments, lane_accumulator, staging (buckets and pieces in transit), activations (with
  /// the model's work space), packed_weights, shared_params (frozen, of which ranks on one host have one copy); on a CUDA device also workspace: what kernels, libraries and exchange had
  /// beside those of these that lie there (with offload that is the staging, too), at the most, and all other ranks of the
  /// process. All but params and states grow to their size in the
  /// first step.
  std::vector<MemoryPart> memory() const;

 private:
  /// For the gradients that the optimizer takes as those of the mean over all that counts in the step, and of the mean over leaves
  /// of the auxiliary loss.
  GradScale grad_scale() const;
  /// Finishes fresh parameters that depend on others, and refreshes what the model derives from parameters.
  void params_replaced();
  void run_leaf(std::int64_t leaf, const GradScale& scale, StepSeconds& seconds);
  /// Bytes sent since the last call, through all communicators.
  SentBytes take_sent();

  TrainerConfig config_;
  std::vector<ParamSpec> specs_;
  NormInit norm_init_;
  ThreadPool pool_;
  Stream stream_;
  Context context_;
  std::unique_ptr<CountingComm> communicator_;
  std::unique_ptr<CountingComm> same_experts_, all_experts_;  // null with one set
  std::optional<ExpertRowsComm> expert_rows_;
  BatchSource batches_;
  std::vector<SequenceReader> evaluation_;  // one for each evaluation file
  Transformer model_;
  ZeroOptimizer optimizer_;
  LeafBatch batch_;
  std::unique_ptr<TrainingLoss> loss_;
  Overrides overrides_;
  std::int64_t steps_done_ = 0;
};

}  // namespace zerofleet
