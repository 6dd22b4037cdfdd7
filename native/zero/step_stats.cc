#include "zero/step_stats.h"

#include <string>
#include <utility>

namespace zerofleet {
namespace {

struct StatsPlan {
  std::vector<NormGroup> groups;
  std::vector<StatsPart> parts;

  std::size_t group_of(const ParamSubset& subset, bool model_parallel) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].expert_set == subset.expert_set && groups[i].model_parallel == model_parallel) return i;
    }
    const std::string name = model_parallel ? subset.name + ", model-parallel" : subset.name;
    groups.push_back({name, subset.expert_set, model_parallel});
    return groups.size() - 1;
  }
};

StatsPlan plan_stats(const std::vector<PlannedPart>& plan) {
  StatsPlan stats;
  for (const PlannedPart& part : plan) {
    if (part.subset.frozen) continue;
    StatsPart entry{&part.layout, part.ranks, {}};
    for (const ParamSettings& settings : part.subset.settings) {
      entry.norm_groups.push_back(stats.group_of(part.subset, settings.model_parallel));
    }
    stats.parts.push_back(std::move(entry));
  }
  return stats;
}

GradStats make_stats(const std::vector<PlannedPart>& plan, const LeafSchedule& schedule, int rank,
                     const ZeroOptions& options) {
  StatsPlan stats = plan_stats(plan);
  GradStats::LeavesOfRanks leaves;
  for (int r = 0; r < schedule.world_size(); ++r) leaves.push_back(schedule.leaves_of(r));
  const int num_sets = options.expert_parallel_size > 1 ? options.expert_parallel_size : 0;
  NormGroups groups(options.gradient_clipping_norm, std::move(stats.groups), num_sets);
  return {std::move(groups), std::move(stats.parts), leaves, rank};
}

}  // namespace

StepStats::StepStats(const std::vector<PlannedPart>& plan, const LeafSchedule& schedule, const ZeroComms& comms,
                     const ZeroOptions& options)
    : comms_(comms), stats_(make_stats(plan, schedule, comms.world.rank(), options)) {
  std::size_t index = 0;
  for (const PlannedPart& part : plan) {
    if (part.subset.frozen) continue;
    if (part.shard_of(comms.world.rank()) >= 0) own_parts_.push_back(index);
    ++index;
  }
}

void StepStats::measure(const RankParts& parts) {
  for (std::size_t i = 0; i < own_parts_.size(); ++i) {
    const GradShardView grads = parts.trained()[i]->grads();
    stats_.measure(parts.placement().context(), own_parts_[i], grads.bytes, grads.dtype);
  }
}

GlobalStats StepStats::exchange(std::span<const LeafRecord> leaves, std::uint32_t flags) {
  return stats_.exchange(comms_.world, comms_.model_parallel, leaves, flags);
}

}  // namespace zerofleet
