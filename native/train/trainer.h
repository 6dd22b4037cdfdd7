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
#include "train/session/pass_runner.h"
#include "train/session/sampling.h"
#include "train/step/step_seconds.h"
#include "train/trainer_comms.h"
#include "train/trainer_config.h"
#include "zero/step/zero_optimizer.h"

namespace zerofleet {

struct StepResult {
  std::int64_t step = 0;  // steps done, this one included
  // Mean over the global batch before the update: nats per target, or the preference objective. Of a session the sum
  // over the passes.
  double loss = 0;
  std::optional<PreferenceMeans> preference;  // only with a preference objective
  // Loss of the routers times its factor, mean over leaves; not part of `loss`; none if the factor is 0.
  std::optional<double> aux_loss;
  double grad_norm = 0;  // before clipping
  double lr = 0;
  double loss_scale = 1;                  // factor of the loss in backward; `loss` and `grad_norm` do not include it
  std::vector<TrustRatios> trust_ratios;  // as in StepSummary
  std::int64_t num_targets = 0;
  bool finite = true;  // false: the update was skipped
  std::int64_t skipped_steps = 0;
  std::uint32_t flags = 0;  // OR of the flags of all ranks
  StepSeconds seconds;
  SentBytes sent;  // by this rank
};

/// Range of elements of one parameter in the optimizer state, without padding.
using OwnedSlice = StateRange;

/// Progress of a training without its tensors, as in a checkpoint. Equal on all ranks.
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

/// A rank's training loop: batches → model → ZeRO optimizer. With TrainerConfig::session its steps come from calls
/// instead: passes() and optim_step().
///
/// Between steps the object holds the state after steps_done() steps. A rank of any world size that loads this state
/// continues with the same bits. Not thread-safe. After an error of the communicator the object can only be destroyed.
class Trainer {
 public:
  /// Throws the errors of validate(), and Error{"invalid_argument"} if the communicators do not match the rank, world
  /// and expert sets of `config`.
  Trainer(const TrainerConfig& config, TrainerComms comms);
  /// Does not wait for other ranks.
  ~Trainer() { abort(); }

  /// Sets the parameters from `first` on to fresh values from the seed. If `first` is not 0, a load must follow.
  void initialize(std::size_t first = 0);

  /// Sets the base of adapters to the initial values of a training with this seed. finish_load() must follow.
  void initialize_base(std::uint64_t seed);

  /// The slices of the state that this rank owns, in canonical parameter order; and its slices of the base of adapters,
  /// which is not part of the state.
  std::vector<OwnedSlice> slices();
  std::vector<OwnedSlice> base_slices();

  /// Sets owned elements of one state from `begin` on. Throws Error{"slice_not_owned"} for elements of other ranks.
  void load(StateId state, std::size_t param, std::int64_t begin, std::span<const float> values);

  /// Ends loading; must be called on every rank. Sets the progress, rebuilds the compute parameters from the master,
  /// and drops the passes of a session since its last update. `restore` selects the fields of the position that apply.
  void finish_load(const TrainingPosition& position, Restore restore);

  /// Computes one step. `flags`: combined over ranks by OR. Throws Error{"diverged"}, on every rank alike, when the
  /// loss scaler gives up.
  StepResult step(std::uint32_t flags);

  /// The passes of a session, which optim_step() turns into a step. Throws Error{"invalid_argument"} in other
  /// trainings.
  PassRunner& passes();
  /// Updates the parameters with the sum of the gradients since the last update. Must be called on every rank at once.
  /// Throws Error{"no_gradients"} without a pass, and Error{"invalid_argument"}; then nothing changes.
  StepResult optim_step(double lr, const UpdateSettings& settings);
  /// Draws answers from the current parameters of a session; see sampling.h. Must be called on every rank at once.
  std::vector<SampledAnswer> sample(std::span<const SequenceRequest> requests);

  /// Computes the log-probabilities of all sequences of all files with the current parameters, which must be those of
  /// the initial model. Some preference objectives need them before the first step or evaluation; for other trainings
  /// the result is empty. Must be called on every rank at once; the result is equal on all.
  std::vector<double> compute_reference() { return loss().compute_reference(); }
  /// Sets the log-probabilities that a trainer of the same training has computed. Throws Error{"invalid_argument"} for
  /// a wrong number of them.
  void set_reference(std::vector<double> log_probs) { loss().set_reference(std::move(log_probs)); }

  /// Returns the loss of an evaluation file with the current parameters, and changes nothing. Must be called on every
  /// rank at once. Throws Error{"no_evaluation_data"} if the configuration has no such file, and Error{"no_targets"}.
  EvalResult evaluate(std::size_t file);

  /// Learning rate of the next step: the override in force, otherwise the schedule's.
  double lr() const;

  /// This rank's share of the state digest. The digest is the sum over ranks mod 2^128.
  Digest128 digest_part();
  /// The same for the base of adapters.
  Digest128 base_digest_part();

  /// Copies the owned state, in the order of slices(), to the start of `target`, which must have at least
  /// owned_bytes().
  void copy_state(std::span<std::byte> target);
  std::size_t owned_bytes();

  /// Makes all present and later waits for other ranks fail with "comm_failed". May be called from any thread.
  void abort();

  const TrainerConfig& config() const { return config_; }
  const std::vector<ParamSpec>& params() const { return specs_; }
  TrainingPosition position() const;

  /// Bytes by part. All parts except parameters and states reach their size during the first step.
  ///
  ///   params, grad_shard, master, moments, lane_accumulator: as in ZeroMemory
  ///   shared_params   frozen parameters, of which the ranks of one host share a copy
  ///   staging         buckets and pieces in transit
  ///   activations     includes the model's scratch memory, and in a session the KV cache and the activations of the
  ///                   largest sample so far
  ///   packed_weights  copies of matrices in the layout of the CPU's products
  ///   workspace       CUDA only: peak device memory beyond the parts above that lie on the device (with offload,
  ///                   staging is one of them). It includes the process's other ranks.
  std::vector<MemoryPart> memory() const;

 private:
  /// Factors of the loss and auxiliary loss. With them the gradients handed to the optimizer are those of the step's
  /// mean loss, and of the mean auxiliary loss over leaves.
  GradScale grad_scale() const;
  /// Sets parameters that are norms of others, and refreshes what the model derives from parameters.
  void params_replaced();
  void make_loss();
  void make_passes();
  /// Drops the passes since the last update, which are of other parameters.
  void drop_gradients();
  /// Throws Error{"invalid_argument"} in a session.
  TrainingLoss& loss();
  /// Makes the result of a step from the optimizer's summary, and counts the step.
  StepResult step_result(const StepSummary& summary, double lr);
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
  std::optional<BatchSource> batches_;      // none in a session
  std::vector<SequenceReader> evaluation_;  // one for each evaluation
  Transformer model_;
  ZeroOptimizer optimizer_;
  LeafBatch batch_;
  std::unique_ptr<TrainingLoss> loss_;  // null in a session
  std::unique_ptr<PassRunner> passes_;  // only in a session
  std::size_t sampling_bytes_ = 0;      // of the largest sample so far
  Overrides overrides_;
  std::int64_t steps_done_ = 0;
};

}  // namespace zerofleet
