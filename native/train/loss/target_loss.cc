#include "train/loss/target_loss.h"

#include <span>

#include "core/error.h"

namespace zerofleet {
namespace {

struct TargetSums {
  double loss_sum = 0;
  std::int64_t num_targets = 0;
};

}  // namespace

LeafLoss TargetLoss::run_leaf(const LeafBatch& batch, const LeafKey& key, const GradScale& scale, GradSink& sink) {
  const LeafResult result = parts_.model.forward_backward(input_of(batch, key), scale, sink);
  return {result.loss_sum, result.num_targets, result.aux_loss, parts_.model.forward_seconds(),
          parts_.model.backward_seconds()};
}

EvalResult TargetLoss::evaluate(std::size_t file) {
  const SequenceReader& sequences = parts_.evaluation[file];
  auto leaves = map_leaves<TargetSums>(sequences, parts_.leaf_sequences, parts_.ranks, parts_.batch, 1,
                                       [&](const LeafBatch& batch, std::span<TargetSums> sums) {
                                         const LeafResult result = parts_.model.forward(input_of(batch));
                                         sums.front() = {result.loss_sum, result.num_targets};
                                       });
  TargetSums all;
  for (std::int64_t leaf = 0; leaf < leaves.num_leaves(); ++leaf) {
    const TargetSums& sums = leaves.leaf(leaf).front();
    all.loss_sum += sums.loss_sum;
    all.num_targets += sums.num_targets;
  }
  require(all.num_targets > 0, "no_targets", "no token of the evaluation data counts as a target");
  return {all.loss_sum / static_cast<double>(all.num_targets), all.num_targets, sequences.num_sequences(), {}};
}

}  // namespace zerofleet
