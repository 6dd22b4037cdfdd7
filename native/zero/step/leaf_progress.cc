#include "zero/step/leaf_progress.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {

LeafProgress::LeafProgress(std::vector<ScheduledLeaf> leaves) : leaves_(std::move(leaves)) {}

const ScheduledLeaf& LeafProgress::begin(std::int64_t leaf) {
  require(!in_leaf_, "leaf_out_of_order",
          "leaf " + std::to_string(leaf) + " begins before the one before it has ended");
  require(!done(), "leaf_out_of_order", "leaf " + std::to_string(leaf) + " begins after the last of this rank's pass");
  const ScheduledLeaf& scheduled = leaves_[records_.size()];
  require(scheduled.leaf == leaf, "leaf_out_of_order",
          "leaf " + std::to_string(leaf) + " begins where leaf " + std::to_string(scheduled.leaf) +
              " is next on this rank");
  in_leaf_ = true;
  return scheduled;
}

void LeafProgress::begin_pass(std::vector<ScheduledLeaf> leaves) {
  leaves_ = std::move(leaves);
  records_.clear();
}

const ScheduledLeaf& LeafProgress::current() const {
  require(in_leaf_, "leaf_out_of_order", "no leaf has begun");
  return leaves_[records_.size()];
}

void LeafProgress::end(const LeafRecord& record) {
  current();
  records_.push_back(record);
  in_leaf_ = false;
}

}  // namespace zerofleet
