#include "train/evaluation.h"

#include <cstddef>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/range.h"

namespace zerofleet {
namespace {

/// Exchanged results of a leaf; a count of targets is exact in a double.
struct LeafLoss {
  double loss_sum = 0;
  double num_targets = 0;
};

/// The leaves of each rank lie together, in ascending order.
class LossTable {
 public:
  LossTable(std::int64_t num_leaves, int world_size) : world_size_(world_size), losses_(static_cast<std::size_t>(num_leaves)) {
    std::int64_t begin = 0;
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      const std::int64_t count = (num_leaves - rank + world_size - 1) / world_size;
      begins_.push_back(begin);
      begin += count > 0 ? count : 0;
    }
    begins_.push_back(begin);
  }

  LeafLoss& of(std::int64_t leaf) {
    return losses_[static_cast<std::size_t>(begins_[static_cast<std::size_t>(leaf % world_size_)] + leaf / world_size_)];
  }

  void exchange(Communicator& ranks) {
    std::vector<Range> pieces;
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(LeafLoss));
    for (std::size_t rank = 0; rank + 1 < begins_.size(); ++rank) {
      pieces.push_back({begins_[rank] * kBytes, begins_[rank + 1] * kBytes});
    }
    ranks.all_gather(std::as_writable_bytes(std::span(losses_)), pieces);
  }

 private:
  std::int64_t world_size_;
  std::vector<LeafLoss> losses_;
  std::vector<std::int64_t> begins_;
};

}  // namespace

EvalResult evaluate(const SequenceReader& sequences, std::int64_t micro_batch_size, Transformer& model,
                    const EvalRanks& ranks, LeafBatch& batch) {
  const std::int64_t num_sequences = sequences.num_sequences();
  const std::int64_t num_leaves = (num_sequences + micro_batch_size - 1) / micro_batch_size;
  const std::int64_t num_sets = ranks.expert_parallel_size;
  const std::int64_t num_computed = (num_leaves + num_sets - 1) / num_sets * num_sets;  // so that no rank is missed
  LossTable losses(num_leaves, ranks.world.world_size());
  sequences.resize(batch, micro_batch_size);
  for (std::int64_t leaf = ranks.world.rank(); leaf < num_computed; leaf += ranks.world.world_size()) {
    for (std::int64_t row = 0; row < micro_batch_size; ++row) {
      const std::int64_t sequence = leaf * micro_batch_size + row;
      if (sequence < num_sequences) {
        sequences.read(sequence, row, batch);
      } else {
        sequences.clear(row, batch);
      }
    }
    const LeafResult result = model.forward({batch.tokens, batch.targets, {}, batch.documents(), batch.padded_lengths()});
    if (leaf < num_leaves) losses.of(leaf) = {result.loss_sum, static_cast<double>(result.num_targets)};
  }
  losses.exchange(ranks.world);
  LeafLoss sum;
  for (std::int64_t leaf = 0; leaf < num_leaves; ++leaf) {
    sum.loss_sum += losses.of(leaf).loss_sum;
    sum.num_targets += losses.of(leaf).num_targets;
  }
  require(sum.num_targets > 0, "no_targets", "no token of the evaluation data counts as a target");
  return {sum.loss_sum / sum.num_targets, static_cast<std::int64_t>(sum.num_targets), num_sequences};
}

}  // namespace zerofleet
