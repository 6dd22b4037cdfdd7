#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "zero/partition/leaf_schedule.h"
#include "zero/step/grad_stats.h"

namespace zerofleet {

/// Tracks a rank's progress through its leaves of a pass. A call out of order throws Error{"leaf_out_of_order"} and
/// changes nothing.
class LeafProgress {
 public:
  explicit LeafProgress(std::vector<ScheduledLeaf> leaves);

  std::span<const ScheduledLeaf> leaves() const { return leaves_; }
  const ScheduledLeaf& begin(std::int64_t leaf);
  /// Returns the leaf in progress.
  const ScheduledLeaf& current() const;
  void end(const LeafRecord& record);
  /// True if all leaves have ended.
  bool done() const { return records_.size() == leaves_.size(); }
  /// Records of the ended leaves, in their order.
  std::span<const LeafRecord> records() const { return records_; }
  /// Begins a step of the same leaves, or a pass of others.
  void begin_step() { records_.clear(); }
  void begin_pass(std::vector<ScheduledLeaf> leaves);

 private:
  std::vector<ScheduledLeaf> leaves_;
  std::vector<LeafRecord> records_;
  bool in_leaf_ = false;
};

}  // namespace zerofleet
