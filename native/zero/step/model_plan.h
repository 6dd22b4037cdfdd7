#pragma once

#include <span>
#include <vector>

#include "core/param_spec.h"
#include "zero/partition/param_partition.h"
#include "zero/partition/shard_layout.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// A subset of the parameters, and the world ranks that hold it. Each of these ranks has the whole subset, and owns one
/// shard.
struct PlannedPart {
  ParamSubset subset;
  ShardLayout layout;
  std::vector<int> ranks;  // (layout.world_size()) world rank of each shard

  /// Returns the shard of `rank`; -1 if the rank does not hold this part.
  int shard_of(int rank) const;
};

/// Plans all parts of the model on all ranks; the same on every rank. With P = expert_parallel_size sets of experts,
/// rank r holds set r mod P, and P consecutive ranks together hold the whole model. Throws Error{"invalid_argument"} if
/// expert sets, ranks, leaves, lanes or parameter groups do not match, and Error{"all_parameters_frozen"}.
std::vector<PlannedPart> plan_model(std::span<const ParamSpec> specs, const ZeroOptions& options, int world_size);

}  // namespace zerofleet
