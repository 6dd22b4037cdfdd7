#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace zerofleet {

/// A leaf of a rank in a step, and its position in its lane.
struct LeafTurn {
  std::int64_t leaf = 0;
  std::int64_t round = 0;      // in which its lane is exchanged
  bool first_of_lane = true;
  bool last_of_lane = true;    // its gradients are sent to their owners, with those of the lane's leaves before it
};

/// Assignment of leaves to ranks, and times of gradient exchange. Pure arithmetic, the same on every rank.
///
/// The V leaves of a step fall into L lanes, leaf v into lane v mod L. In round j rank r of N computes the leaves of lane
/// jN + r, in ascending order, and adds them up by itself; then the lanes of the round are exchanged, and owners fold them
/// in lane order. What is added to what is given by V and L alone, never by N.
/// With L = V (ZeRO stage 2) a lane is one leaf; with fewer lanes (stage 1) ranks exchange ceil(L / N) times per step.
/// Lanes are folded in groups of G consecutive ones (docs/exactness.md): the terms of a sum are those of its groups.
class LeafSchedule {
 public:
  /// Throws Error{"invalid_argument"} unless 1 ≤ num_lanes ≤ num_leaves, Error{"too_many_ranks"} for more ranks than
  /// lanes, because some would never have work.
  LeafSchedule(std::int64_t num_leaves, std::int64_t num_lanes, int world_size, std::int64_t lane_group = 1);

  std::int64_t num_leaves() const { return num_leaves_; }
  std::int64_t num_lanes() const { return num_lanes_; }
  int world_size() const { return world_size_; }
  /// G; the last group of a step may have fewer lanes.
  std::int64_t lane_group() const { return lane_group_; }
  std::int64_t num_rounds() const { return (num_lanes_ + world_size_ - 1) / world_size_; }

  /// Number of ranks that have a lane in `round`: the first ones.
  int num_senders(std::int64_t round) const {
    return static_cast<int>(std::min<std::int64_t>(world_size_, num_lanes_ - round * world_size_));
  }

  /// The leaves of `rank`, in the order in which it computes them.
  std::vector<LeafTurn> turns_of(int rank) const;
  std::vector<std::int64_t> leaves_of(int rank) const;

  /// Returns true if there are lanes of several leaves, whose gradients must be added up before they are exchanged.
  bool adds_leaves() const { return num_lanes_ < num_leaves_; }

 private:
  std::int64_t num_leaves_;
  std::int64_t num_lanes_;
  int world_size_;
  std::int64_t lane_group_;
};

}  // namespace zerofleet
