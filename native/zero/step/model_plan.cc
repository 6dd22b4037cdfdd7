#include "zero/step/model_plan.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {
namespace {

void check(std::span<const ParamSpec> specs, const ZeroOptions& options, int world_size) {
  const int num_sets = options.expert_parallel_size;
  const auto require_multiple = [&](std::int64_t count, const char* noun) {
    require(count % num_sets == 0, "invalid_argument",
            "expert_parallel_size " + std::to_string(num_sets) + " does not divide the " + std::to_string(count) + " " +
                noun);
  };
  require_multiple(world_size, "ranks");
  require_multiple(options.num_leaves, "leaves per step");
  require_multiple(options.num_lanes, "lanes");
  require(options.param_groups.settings.size() == specs.size(), "invalid_argument",
          "the parameter groups are those of another model");
  bool all_frozen = true;
  for (const ParamSettings& settings : options.param_groups.settings) {
    require(settings.group < options.param_groups.groups.size(), "invalid_argument",
            "a parameter is in a group that is not there");
    all_frozen = all_frozen && settings.frozen;
  }
  require(!all_frozen, "all_parameters_frozen", "every parameter is frozen, so there is nothing to train");
}

}  // namespace

int PlannedPart::shard_of(int rank) const {
  const auto found = std::ranges::find(ranks, rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

std::vector<PlannedPart> plan_model(std::span<const ParamSpec> specs, const ZeroOptions& options, int world_size) {
  check(specs, options, world_size);
  const int num_sets = options.expert_parallel_size;
  const std::int64_t bucket_blocks = bucket_capacity_blocks(options.bucket_bytes, options.reduce_dtype);
  std::vector<PlannedPart> parts;
  for (ParamSubset& subset : partition_params(specs, options.param_groups.settings, num_sets)) {
    const bool shared = subset.expert_set < 0;
    std::vector<int> ranks;
    const int first = shared ? 0 : subset.expert_set, stride = shared ? 1 : num_sets;
    for (int rank = first; rank < world_size; rank += stride) ranks.push_back(rank);
    ShardLayout layout(subset.specs, static_cast<int>(ranks.size()), bucket_blocks);
    parts.push_back({std::move(subset), std::move(layout), std::move(ranks)});
  }
  return parts;
}

}  // namespace zerofleet
