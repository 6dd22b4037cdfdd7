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

/// Results of a leaf besides its gradient.
struct LeafRecord {
  double loss_sum = 0;
  std::int64_t num_targets = 0;
  double aux_loss = 0;
};

/// A part of the model, for the statistics.
struct StatsPart {
  const ShardLayout* layout = nullptr;  // must outlive the statistics
  std::vector<int> ranks;               // (layout->world_size()) world rank of each shard
  std::vector<bool> spread;             // (layout->num_params()) true if elements differ between model-parallel ranks
};

/// Global statistics of a step, with equal bits on every rank.
struct GlobalStats {
  double norm = 0;  // of the sum of gradients before averaging; not finite if any element is not
  double loss_sum = 0;
  std::int64_t num_targets = 0;
  double aux_loss = 0;  // mean over leaves; 0 without leaves
  std::uint32_t flags = 0;
};

/// Computes global statistics of a step. Statistics per block, losses per leaf and request flags of all ranks travel in
/// one all-gather. Every rank then folds blocks by their ids and losses by leaf, so no result depends on the world
/// size.
class GradStats {
 public:
  /// Leaves that each rank reports in a step, in its order, (world_size). Together they are 0 … V-1, or none.
  using LeavesOfRanks = std::vector<std::vector<std::int64_t>>;

  /// `parts`: all parts of the model with gradients, including expert sets of other ranks. Throws
  /// Error{"invalid_argument"} for parts or leaves that do not match each other.
  GradStats(NormKind norm, std::vector<StatsPart> parts, const LeavesOfRanks& leaves, int rank);

  /// Measures this rank's shard of `part`. Every part of the rank is measured once per step. Runs on the rank's
  /// threads.
  void measure(const Context& context, std::size_t part, std::span<const std::byte> grad_shard, DType dtype);
  /// Exchanges and folds the statistics. `leaves`: this rank's, in its order. `model_parallel`: the ranks that hold the
  /// pieces of one model; null if every rank holds the whole model. With it, norms are those of the whole model, and
  /// flags those of any rank. Losses and targets, which such ranks share, are those of its rank 0. Throws errors of the
  /// communicators.
  GlobalStats exchange(Communicator& world, Communicator* model_parallel, std::span<const LeafRecord> leaves,
                       std::uint32_t flags);

 private:
  /// Offsets of a part's blocks in the messages.
  struct Blocks {
    std::vector<std::int64_t> begin;  // (shards of the part) in doubles
    int own_shard = -1;               // of this rank; -1: none
  };

  void check(const LeavesOfRanks& leaves, int rank) const;
  /// Assigns offsets from `begin` on to the blocks that `rank` reports. Returns their end.
  std::int64_t lay_out_blocks(int rank, std::int64_t begin, int own_rank);
  std::int64_t& record_offset(std::int64_t leaf) { return record_offsets_[static_cast<std::size_t>(leaf)]; }
  double& at(std::int64_t offset) { return messages_[static_cast<std::size_t>(offset)]; }
  NormSums fold_messages(GlobalStats& stats);
  NormSums fold_model_parallel(Communicator& ranks, const NormSums& sums, GlobalStats& stats) const;

  NormKind norm_;
  std::vector<StatsPart> parts_;
  std::vector<Blocks> blocks_;                // (number of parts)
  std::vector<std::int64_t> record_offsets_;  // (V) offset of each leaf's record, in doubles
  std::vector<Range> pieces_;                 // (world_size) in doubles
  Range own_;                                 // this rank's piece
  std::int64_t own_num_leaves_ = 0;
  std::vector<double> messages_;  // of all ranks, one after another
  std::vector<float> max_abs_;    // scratch
};

/// Returns the factor that clips a gradient to `max_norm`: min(1, max_norm / (norm + 1e-6)), as in
/// torch.nn.utils.clip_grad_norm_. Returns 1 for max_norm 0, which disables clipping.
double clip_coefficient(double norm, double max_norm);

}  // namespace zerofleet
