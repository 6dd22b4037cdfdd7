#include "kernels/optimizer/lamb.h"

#include <vector>

#include "core/error.h"
#include "kernels/common/backend.h"
#include "kernels/optimizer/optimizer_update.h"

namespace zerofleet {
namespace {

void check(std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
           std::span<const LambScalars> groups) {
  for (const LambScalars& group : groups) require_eps(group.eps);
  check_segments(segments, dtypes, 2, groups.size());
}

void check_sums(std::span<const OptimizerSegment> segments, const LambSums& sums) {
  require(sums.block_numel >= 32 && sums.block_numel <= 4096 && sums.block_numel % 32 == 0, "invalid_argument",
          "a block of LAMB has 32 to 4096 elements, a multiple of 32");
  require(sums.first_stats.size() == segments.size() && sums.weights.size() == sums.updates.size(), "invalid_argument",
          "LAMB needs a first slot for each segment, and as many sums of updates as of weights");
  const auto num_slots = static_cast<std::int64_t>(sums.weights.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::int64_t num_blocks = segments[i].numel / sums.block_numel;
    require(segments[i].numel == num_blocks * sums.block_numel, "invalid_argument", "LAMB needs whole blocks");
    require(sums.first_stats[i] >= 0 && sums.first_stats[i] <= num_slots - num_blocks, "invalid_argument",
            "the sums of a segment have no slot");
  }
}

}  // namespace

void lamb_prepare(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                  std::span<const LambScalars> groups, const LambSums& sums) {
  check(segments, dtypes, groups);
  check_sums(segments, sums);
  backend_of(context).lamb_prepare(context, segments, dtypes, groups, sums);
}

void lamb_update(const Context& context, std::span<const OptimizerSegment> segments, const OptimizerDTypes& dtypes,
                 std::span<const LambScalars> groups, std::span<const float> trust_ratios) {
  check(segments, dtypes, groups);
  require(trust_ratios.size() == segments.size(), "invalid_argument", "there must be one trust ratio per segment");
  // A group for each segment, since each has a step of its own.
  std::vector<OptimizerSegment> own(segments.begin(), segments.end());
  std::vector<LambScalars> scalars;
  scalars.reserve(own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    scalars.push_back(groups[own[i].group]);
    scalars.back().lr = scalars.back().lr * trust_ratios[i];
    own[i].group = i;
  }
  optimizer_update<LambUpdate>(context, own, dtypes, scalars);
}

}  // namespace zerofleet
