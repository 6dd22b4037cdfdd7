#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "train/loss/training_loss.h"

namespace zerofleet {

/// Mean negative log-likelihood of all targets, in nats.
class TargetLoss final : public TrainingLoss {
 public:
  explicit TargetLoss(LossParts parts) : parts_(std::move(parts)) {}

  std::int64_t num_counted(std::int64_t step) const override { return parts_.batches.num_targets(step); }
  LeafLoss run_leaf(const LeafBatch& batch, const LeafKey& key, const GradScale& scale, GradSink& sink) override;
  StepReport end_step(std::int64_t num_counted) override { return {num_counted, {}}; }
  EvalResult evaluate(std::size_t file) override;

 private:
  LossParts parts_;
};

}  // namespace zerofleet
