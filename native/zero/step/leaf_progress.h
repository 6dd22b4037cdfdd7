#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "zero/partition/leaf_schedule.h"
#include "zero/step/grad_stats.h"

namespace zerofleet {

/// Tracks a rank's progress through its leaves of a step. A call out of order throws Error{"leaf_out_of_order"} and
/// changes nothing.
class LeafProgress {
 public:
  explicit LeafProgress(std::vector<LeafTurn> turns);

  std::span<const LeafTurn> turns() const { return turns_; }
  const LeafTurn& begin(std::int64_t leaf);
  /// Returns the leaf in progress.
  const LeafTurn& current() const;
  void end(const LeafRecord& record);
  /// True if all leaves have ended.
  bool done() const { return records_.size() == turns_.size(); }
  /// Records of the ended leaves, in their order.
  std::span<const LeafRecord> records() const { return records_; }
  void begin_step() { records_.clear(); }

 private:
  std::vector<LeafTurn> turns_;
  std::vector<LeafRecord> records_;
  bool in_leaf_ = false;
};

}  // namespace zerofleet
