#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// L2 norms of a parameter and of its update, before the learning rate is applied.
struct ParamNorm {
  double weight = 0;
  double update = 0;
};

/// Norms of single parameters whose blocks lie on many ranks. Rules that scale each parameter's update by a trust ratio
/// (LAMB) need them.
///
/// Ranks exchange sums of squares per owned block in one all-gather, and fold those of each parameter in block order. A
/// norm therefore has the same bits on every rank and for every world size.
class ParamNorms {
 public:
  /// `layout` must outlive the object.
  ParamNorms(const ShardLayout& layout, int rank);

  /// Sums of squares of the weights and of their updates, (shard_num_blocks) each. OptimizerRule::prepare() fills them,
  /// in the block order of this rank's shard.
  std::span<double> weight_sums() { return own(0); }
  std::span<double> update_sums() { return own(1); }

  /// Returns the norms of every parameter of the layout, (num_params). Throws errors of the communicator.
  std::vector<ParamNorm> exchange(Communicator& communicator);

 private:
  std::span<double> own(std::int64_t kind);

  const ShardLayout& layout_;
  int rank_;
  std::vector<double> messages_;  // by rank: sums of the weights, then of the updates
  std::vector<Range> pieces_;     // (world_size) in doubles
};

}  // namespace zerofleet
