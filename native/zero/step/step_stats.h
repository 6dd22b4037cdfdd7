#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "zero/step/grad_stats.h"
#include "zero/step/model_plan.h"
#include "zero/step/rank_parts.h"
#include "zero/step/zero_comms.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// Statistics of a step over all trained parts of the model.
class StepStats {
 public:
  /// `leaves`: those that ranks report in exchange(). All other referenced objects must outlive this one.
  StepStats(const std::vector<PlannedPart>& plan, const GradStats::LeavesOfRanks& leaves, const ZeroComms& comms,
            const ZeroOptions& options);

  /// Measures the gradient shards of this rank. Requires a drained queue.
  void measure(const RankParts& parts);
  /// Exchanges the statistics, and returns the global ones. `leaves`: this rank's. Throws errors of the communicator.
  GlobalStats exchange(std::span<const LeafRecord> leaves, std::uint32_t flags);

 private:
  ZeroComms comms_;
  std::vector<std::size_t> own_parts_;  // index of each trained part of this rank in the statistics
  GradStats stats_;
};

}  // namespace zerofleet
