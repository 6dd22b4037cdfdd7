#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace zerofleet {

/// A leaf that a rank computes in a step, and its position in its lane.
struct ScheduledLeaf {
  std::int64_t leaf = 0;
  std::int64_t round = 0;  // in which the lane is exchanged
  bool first_of_lane = true;
  bool last_of_lane = true;  // after it, the lane's gradients are sent to their owners
};

/// The lanes that ranks exchange at a time: the first num_senders ranks send one each, in lane order.
struct LaneRound {
  std::int64_t first_lane = 0;
  int num_senders = 0;
  std::int64_t num_lanes = 0;  // of all rounds
  bool starts_sum = true;      // false: earlier lanes of the step are in the sum, those of other passes
};

/// Assignment of leaves to ranks and rounds. Pure arithmetic, the same on every rank.
///
/// The V leaves of a pass are divided among L lanes; leaf v belongs to lane v mod L. In round j, rank r of N computes
/// the leaves of lane jN + r in ascending order, and sums their gradients. Then the ranks exchange the lanes of the
/// round, and owners fold them in lane order. V and L alone decide what is added to what, never N.
///
/// With L = V (ZeRO stage 2) a lane is one leaf. With fewer lanes (stage 1) ranks exchange ceil(L / N) times per step.
/// Lanes are folded in groups of G consecutive ones (docs/exactness.md); the terms of a sum are those of its groups.
class LeafSchedule {
 public:
  /// Throws Error{"invalid_argument"} unless 1 ≤ num_lanes ≤ num_leaves. Ranks beyond the number of lanes have no leaf.
  LeafSchedule(std::int64_t num_leaves, std::int64_t num_lanes, int world_size, std::int64_t lane_group = 1);

  std::int64_t num_leaves() const { return num_leaves_; }
  std::int64_t num_lanes() const { return num_lanes_; }
  int world_size() const { return world_size_; }
  /// G; the last group may have fewer lanes.
  std::int64_t lane_group() const { return lane_group_; }
  std::int64_t num_rounds() const { return (num_lanes_ + world_size_ - 1) / world_size_; }

  /// Number of ranks with a lane in `round`; they are the first ones.
  int num_senders(std::int64_t round) const {
    return static_cast<int>(std::min<std::int64_t>(world_size_, num_lanes_ - round * world_size_));
  }
  LaneRound round(std::int64_t number) const { return {number * world_size_, num_senders(number), num_lanes_}; }

  /// Returns the leaves of `rank`, in the order of their computation.
  std::vector<ScheduledLeaf> schedule_of(int rank) const;
  std::vector<std::int64_t> leaves_of(int rank) const;
  /// The same for each rank.
  std::vector<std::vector<std::int64_t>> leaves_of_ranks() const;

  /// True if lanes have several leaves, whose gradients are summed before the exchange.
  bool adds_leaves() const { return num_lanes_ < num_leaves_; }

 private:
  std::int64_t num_leaves_;
  std::int64_t num_lanes_;
  int world_size_;
  std::int64_t lane_group_;
};

}  // namespace zerofleet
