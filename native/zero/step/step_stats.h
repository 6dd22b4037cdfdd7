#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "zero/partition/leaf_schedule.h"
#include "zero/step/grad_stats.h"
#include "zero/step/model_plan.h"
#include "zero/step/rank_parts.h"
#include "zero/step/zero_comms.h"
#include "zero/step/zero_options.h"

namespace zerofleet {

/// The statistics of a step over all trained parts of the model.
class StepStats {
 public:
  /// All referenced objects must outlive this one.
  StepStats(const std::vector<PlannedPart>& plan, const LeafSchedule& schedule, const ZeroComms& comms,
            const ZeroOptions& options);

  /// The gradient shards of this rank. After the queue is drained.
  void measure(const RankParts& parts);
  /// Exchanges the statistics and returns the global ones; `leaves` are this rank's. Throws errors of the communicator.
  GlobalStats exchange(std::span<const LeafRecord> leaves, std::uint32_t flags);

 private:
  ZeroComms comms_;
  std::vector<std::size_t> own_parts_;  // numbers in the statistics of the trained parts of this rank, in their order
  GradStats stats_;
};

}  // namespace zerofleet
