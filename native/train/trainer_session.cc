#include <cmath>

#include "core/error.h"
#include "train/trainer.h"
#include "zero/exchange/stopwatch.h"

// The calls of a training session.
namespace zerofleet {

void Trainer::make_passes() {
  passes_ = std::make_unique<PassRunner>(
      PassRunner::Parts{model_, optimizer_, *communicator_},
      PassLimits{config_.batch.global_batch_size, config_.leaf_sequences(), config_.batch.sequence_length,
                 config_.model.vocab_size, config_.model.has_base()});
}

PassRunner& Trainer::passes() {
  require(passes_ != nullptr, "invalid_argument", "the training reads its data from files: it is not a session");
  return *passes_;
}

StepResult Trainer::optim_step(double lr, const UpdateSettings& settings) {
  const Stopwatch watch;
  const PassTotals& totals = passes().totals();
  require(std::isfinite(lr) && lr >= 0, "invalid_argument", "the learning rate of a step is at least 0");
  StepResult result = step_result(optimizer_.step({.lr = lr, .update = settings}), lr);
  result.loss = totals.loss;
  result.num_targets = totals.num_targets;
  result.seconds.forward = totals.seconds.forward;
  result.seconds.backward = totals.seconds.backward;
  result.seconds.exchange += totals.seconds.exchange;
  result.seconds.total = totals.seconds.total + watch.seconds();
  passes_->clear_totals();
  return result;
}

void Trainer::drop_gradients() {
  passes().clear_totals();
  optimizer_.drop_passes();
}

std::vector<SampledAnswer> Trainer::sample(std::span<const SequenceRequest> requests) {
  passes();
  return zerofleet::sample({context_, model_, config_.model, config_.batch.sequence_length, config_.precision,
                            optimizer_.params(), optimizer_.quantized_params(), *communicator_},
                           requests, sampling_bytes_);
}

}  // namespace zerofleet
