#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/context.h"
#include "zero/shard_layout.h"

namespace zerofleet {

/// What one leaf reports besides its gradient.
struct LeafRecord {
  double loss_sum = 0;
  std::int64_t num_targets = 0;
};

/// What all ranks know after the exchange of a step's statistics; equal bits on every rank.
struct GlobalStats {
  double sum_squares = 0;  // of the summed, not yet averaged gradient
  double loss_sum = 0;
  std::int64_t num_targets = 0;
  std::uint32_t flags = 0;
};

/// Sums of squares per block, losses per leaf and request flags of all ranks travel in one all-gather. Every rank then
/// folds them in the same order, squares by block id and losses by leaf, so none of it depends on the world size.
class GradStats {
 public:
  GradStats(const ShardLayout& layout, int rank, std::int64_t num_leaves);

  /// The part of this rank: block sums of its shard. Runs on the rank's threads.
  void measure(const Context& context, std::span<const float> grad_shard);
  /// Exchanges and folds; `leaves` are this rank's in the order of rounds. Throws what the communicator throws.
  GlobalStats exchange(Communicator& communicator, std::span<const LeafRecord> leaves, std::uint32_t flags);

 private:
  /// Places in the message of one rank, in doubles: flags, then (loss sum, number of targets) per leaf, then blocks.
  std::int64_t leaves_of(int rank) const;
  std::int64_t record_place(std::int64_t leaf) const;

  const ShardLayout& layout_;
  int rank_;
  std::int64_t num_leaves_;
  std::vector<double> messages_;  // of all ranks, one after another
  std::vector<Range> pieces_;     // (world_size) in doubles
};

/// What is left of a gradient when it is clipped to `max_norm`: min(1, max_norm / (norm + 1e-6)), as
/// torch.nn.utils.clip_grad_norm_ has it. 1 for max_norm 0, which means no clipping.
double clip_coefficient(double norm, double max_norm);

}  // namespace zerofleet
