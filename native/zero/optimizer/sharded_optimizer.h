#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/dtype.h"
#include "zero/exchange/param_gather.h"
#include "zero/exchange/param_norms.h"
#include "zero/offload/offload.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/optimizer/state_shard.h"
#include "zero/partition/param_partition.h"
#include "zero/partition/shard_layout.h"

namespace zerofleet {

/// A rank's sums of gradients, in the layout of its states.
struct GradShardView {
  std::span<const std::byte> bytes;
  DType dtype = DType::kF32;
};

/// Updates the states that one rank owns of one part.
class ShardedOptimizer {
 public:
  /// All referenced objects must outlive this one.
  ShardedOptimizer(const StatePlacement& placement, const ShardLayout& layout, int rank, const ParamSubset& subset,
                   StateShard& states, const OptimizerRule& rule);

  /// Runs the first pass of rules that need parameter norms, and exchanges its results among all ranks of
  /// `communicator`, which hold the part. Does nothing for other rules. Throws errors of the communicator.
  void prepare(const GradShardView& grads, const UpdateScalars& scalars, Communicator& communicator);
  /// Trust ratios from prepare(), (num_params); empty for rules without them.
  std::span<const float> trust_ratios() const { return norms_ ? std::span(trust_ratios_) : std::span<const float>{}; }
  /// Updates the owned blocks of `buckets` and writes their new parameters.
  void update(const Range& buckets, const GradShardView& grads, const UpdateScalars& scalars, const ParamWindow& window,
              DType param_dtype);

 private:
  /// Consecutive owned blocks in one bucket and with the same hyper-parameters.
  struct Run {
    std::size_t param = 0;         // of the first block
    std::int64_t first_block = 0;  // of the layout
    std::int64_t num_blocks = 0;
    std::int64_t shard_offset = 0;  // in elements
    std::size_t group = 0;
  };

  void add_runs(const Range& owned, std::int64_t shard_offset, const ParamSubset& subset);
  std::span<const Run> runs_of(const Range& buckets) const;
  UpdateSegment segment_of(const Run& run, const GradShardView& grads);

  const StatePlacement& placement_;
  const ShardLayout& layout_;
  StateShard& states_;
  const OptimizerRule& rule_;
  std::vector<Run> runs_;                // bucket by bucket
  std::vector<std::size_t> first_runs_;  // (num_buckets + 1)
  std::optional<ParamNorms> norms_;      // for rules that need them
  std::vector<float> trust_ratios_;      // (num_params)
};

}  // namespace zerofleet
