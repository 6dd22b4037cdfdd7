#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/device/context.h"
#include "core/dtype.h"
#include "zero/partition/shard_layout.h"
#include "zero/step/grad_norm.h"

namespace zerofleet {

/// Report of a leaf besides its gradient.
struct LeafRecord {
  double loss_sum = 0;
  std::int64_t num_targets = 0;
  double aux_loss = 0;
};

/// A part of the model with a layout of its own, as the statistics see it.
struct StatsPart {
  const ShardLayout* layout = nullptr;  // must outlive the statistics
  std::vector<int> ranks;               // (layout->world_size()) the rank of the world that holds each shard
  std::vector<bool> spread;             // (layout->num_params()) whether model-parallel ranks hold other elements of it
};

/// Global result of the exchange of a step's statistics; equal bits on every rank.
struct GlobalStats {
  double norm = 0;  // of the summed, not yet averaged gradient; not finite if any element is not
  double loss_sum = 0;
  std::int64_t num_targets = 0;
  double aux_loss = 0;  // mean over leaves
  std::uint32_t flags = 0;
};

/// Statistics per block, losses per leaf and request flags of all ranks travel in one all-gather. Every rank then
/// folds them in the same order, blocks by their ids and losses by leaf, so none of it depends on the world size.
class GradStats {
 public:
  /// (world_size) the leaves that each rank computes in a step, in its order; together they are 0 … V-1.
  using LeavesOfRanks = std::vector<std::vector<std::int64_t>>;

  /// `parts` are all parts of the model that have gradients, those of other ranks' expert sets too.
  /// Throws Error{"invalid_argument"} for parts or leaves that don't fit together.
  GradStats(NormKind norm, std::vector<StatsPart> parts, const LeavesOfRanks& leaves, int rank);

  /// The statistics of this rank's shard of `part`; every part that it holds is measured once per step. Runs on the
  /// rank's threads.
  void measure(const Context& context, std::size_t part, std::span<const std::byte> grad_shard, DType dtype);
  /// Exchanges and folds; `leaves` are this rank's in its order. `model_parallel` has the ranks that hold the pieces of
  /// one model, null where every rank has the whole: norms are then those of the whole model, flags those of any rank;
  /// losses and targets, which such ranks have in common, are those of its rank 0. Throws what a communicator throws.
  GlobalStats exchange(Communicator& world, Communicator* model_parallel, std::span<const LeafRecord> leaves,
                       std::uint32_t flags);

 private:
  /// Location of a part's blocks in the messages.
  struct Blocks {
    std::vector<std::int64_t> begin;  // (shards of the part) in doubles
    int own_shard = -1;               // of this rank, -1 for none
  };

  void check(const LeavesOfRanks& leaves, int rank) const;
  /// Places for the blocks that `rank` reports, from `begin` on; returns their end.
  std::int64_t lay_out_blocks(int rank, std::int64_t begin, int own_rank);
  std::int64_t& record_place(std::int64_t leaf) { return record_places_[static_cast<std::size_t>(leaf)]; }
  double& at(std::int64_t place) { return messages_[static_cast<std::size_t>(place)]; }
  NormSums fold_messages(GlobalStats& stats);
  NormSums fold_model_parallel(Communicator& ranks, const NormSums& sums, GlobalStats& stats) const;

  NormKind norm_;
  std::vector<StatsPart> parts_;
  std::vector<Blocks> blocks_;               // (number of parts)
  std::vector<std::int64_t> record_places_;  // (V) in doubles, of each leaf's record
  std::vector<Range> pieces_;                // (world_size) in doubles
  Range own_;                                // the piece of this rank
  std::int64_t own_num_leaves_ = 0;
  std::vector<double> messages_;             // of all ranks, one after another
  std::vector<float> max_abs_;               // scratch
};

/// Returns the factor by which a gradient is clipped to `max_norm`: min(1, max_norm / (norm + 1e-6)), as
/// torch.nn.utils.clip_grad_norm_ has it. 1 for max_norm 0, which means no clipping.
double clip_coefficient(double norm, double max_norm);

}  // namespace zerofleet
