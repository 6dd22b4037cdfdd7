#include "zero/partition/leaf_schedule.h"

#include <string>

#include "core/error.h"

namespace zerofleet {

LeafSchedule::LeafSchedule(std::int64_t num_leaves, std::int64_t num_lanes, int world_size, std::int64_t lane_group)
    : num_leaves_(num_leaves), num_lanes_(num_lanes), world_size_(world_size), lane_group_(lane_group) {
  require(num_leaves >= 1, "invalid_argument", "a pass needs at least one leaf");
  require(num_lanes >= 1 && num_lanes <= num_leaves, "invalid_argument",
          std::to_string(num_lanes) + " lanes for " + std::to_string(num_leaves) +
              " leaves; there must be at least one, and not more than leaves");
  require(world_size >= 1, "invalid_argument", "a schedule needs at least one rank");
  require(lane_group >= 1, "invalid_argument", "a group needs at least one lane");
}

std::vector<ScheduledLeaf> LeafSchedule::schedule_of(int rank) const {
  std::vector<ScheduledLeaf> leaves;
  for (std::int64_t round = 0; round < num_rounds(); ++round) {
    if (rank >= num_senders(round)) break;
    const std::int64_t lane = round * world_size_ + rank;
    for (std::int64_t leaf = lane; leaf < num_leaves_; leaf += num_lanes_) {
      leaves.push_back({leaf, round, leaf == lane, leaf + num_lanes_ >= num_leaves_});
    }
  }
  return leaves;
}

std::vector<std::int64_t> LeafSchedule::leaves_of(int rank) const {
  std::vector<std::int64_t> leaves;
  for (const ScheduledLeaf& scheduled : schedule_of(rank)) leaves.push_back(scheduled.leaf);
  return leaves;
}

std::vector<std::vector<std::int64_t>> LeafSchedule::leaves_of_ranks() const {
  std::vector<std::vector<std::int64_t>> leaves;
  for (int rank = 0; rank < world_size_; ++rank) leaves.push_back(leaves_of(rank));
  return leaves;
}

}  // namespace zerofleet
