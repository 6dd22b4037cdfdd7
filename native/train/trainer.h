#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "core/buffer.h"
#include "core/context.h"
#include "data/batch_source.h"
#include "model/transformer.h"
#include "train/trainer_config.h"
#include "zero/zero_optimizer.h"

namespace zerofleet {

/// Wall seconds of one step by phase; they overlap where communication hides behind backward.
struct StepSeconds {
  double total = 0, forward = 0, backward = 0, exchange = 0, optimizer = 0, gather = 0;
};

struct StepResult {
  std::int64_t step = 0;  // steps done, this one included
  double loss = 0;        // mean negative log-likelihood (nats) over the global batch, before the update
  double grad_norm = 0;   // before clipping
  double lr = 0;
  std::int64_t num_targets = 0;
  bool finite = true;  // false: the update was skipped
  std::int64_t skipped_steps = 0;
  std::uint32_t flags = 0;  // OR of what all ranks passed in
  StepSeconds seconds;
};

/// A place in the optimizer state: elements [begin, end) of one parameter, padding left out.
struct OwnedSlice {
  StateId state = StateId::kMaster;
  std::size_t param = 0;
  Range elements;
};

/// One rank's training loop over the components: batches → model → ZeRO optimizer. Between steps it is the state after
/// `steps_done()` steps; a rank of another world size that loads the same state goes on with the same bits.
/// Not thread-safe: one call at a time. Errors of the communicator leave the object fit for destruction only.
class Trainer {
 public:
  Trainer(const TrainerConfig& config, std::unique_ptr<Communicator> communicator);

  /// Fresh parameters from the seed.
  void initialize();

  /// What this rank owns, in canonical parameter order.
  std::vector<OwnedSlice> slices();

  /// Fills owned elements of one state from `begin`. Throws Error{"slice_not_owned"} where they are not this rank's.
  void load(StateId state, std::size_t param, std::int64_t begin, std::span<const float> values);

  /// After all loads, on every rank: sets the place in training and rebuilds the compute parameters from the master.
  void finish_load(std::int64_t step, std::int64_t optimizer_steps, std::int64_t skipped_steps);

  StepResult step(std::uint32_t flags);

  /// This rank's share of the state digest; the sum over ranks mod 2^128 is the job's.
  Digest128 digest_part();

  /// Copies the owned state, in the order of slices(), to the start of `target`, which must hold owned_bytes().
  void copy_state(std::span<std::byte> target);
  std::size_t owned_bytes();

  const TrainerConfig& config() const { return config_; }
  const std::vector<ParamSpec>& params() const { return specs_; }
  std::int64_t steps_done() const { return steps_done_; }
  std::int64_t optimizer_steps() const { return optimizer_.optimizer_steps(); }
  std::int64_t skipped_steps() const { return optimizer_.skipped_steps(); }

 private:
  void run_leaf(std::int64_t leaf, StepSeconds& seconds);

  TrainerConfig config_;
  std::vector<ParamSpec> specs_;
  ThreadPool pool_;
  Context context_;
  std::unique_ptr<Communicator> communicator_;
  BatchSource batches_;
  Transformer model_;
  ZeroOptimizer optimizer_;
  LeafBatch batch_;
  std::int64_t steps_done_ = 0;
};

}  // namespace zerofleet
