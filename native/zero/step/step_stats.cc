#include "zero/step/step_stats.h"

#include <utility>

namespace zerofleet {
namespace {

GradStats make_stats(const std::vector<PlannedPart>& plan, const GradStats::LeavesOfRanks& leaves, int rank,
                     NormKind norm) {
  std::vector<StatsPart> parts;
  for (const PlannedPart& part : plan) {
    if (part.subset.frozen) continue;
    StatsPart& entry = parts.emplace_back(&part.layout, part.ranks);
    for (const ParamSettings& settings : part.subset.settings) entry.spread.push_back(settings.model_parallel);
  }
  return {norm, std::move(parts), leaves, rank};
}

}  // namespace

StepStats::StepStats(const std::vector<PlannedPart>& plan, const GradStats::LeavesOfRanks& leaves,
                     const ZeroComms& comms, const ZeroOptions& options)
    : comms_(comms), stats_(make_stats(plan, leaves, comms.world.rank(), options.gradient_clipping_norm)) {
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
