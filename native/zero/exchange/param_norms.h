#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// L2 norms of one parameter and of its update, before the learning rate.
struct ParamNorm {
  double weight = 0;
  double update = 0;
};

/// Norms of single parameters although a parameter's blocks lie on many ranks, for rules that scale the update of each
/// parameter by a trust ratio (LAMB). Ranks exchange sums of squares per owned block in one all-gather and fold those of
/// each parameter in block order, so a norm has the same bits on every rank and for every world size.
class ParamNorms {
 public:
  /// `layout` must outlive the object.
  ParamNorms(const ShardLayout& layout, int rank);

  /// (shard_num_blocks) each, to be filled by OptimizerRule::prepare: sums of squares of this rank's blocks in the order
  /// of its shard, of the weights and of their updates.
  std::span<double> weight_sums() { return own(0); }
  std::span<double> update_sums() { return own(1); }

  /// (num_params) the norms of every parameter of the layout. Throws errors of the communicator.
  std::vector<ParamNorm> exchange(Communicator& communicator);

 private:
  std::span<double> own(std::int64_t kind);

  const ShardLayout& layout_;
  int rank_;
  std::vector<double> messages_;  // rank by rank: sums of the weights, then sums of the updates
  std::vector<Range> pieces_;     // (world_size) in doubles
};

}  // namespace zerofleet
