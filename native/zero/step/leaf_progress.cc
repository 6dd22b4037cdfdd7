#include "zero/step/leaf_progress.h"

#include <string>
#include <utility>

#include "core/error.h"

namespace zerofleet {

LeafProgress::LeafProgress(std::vector<LeafTurn> turns) : turns_(std::move(turns)) {}

const LeafTurn& LeafProgress::begin(std::int64_t leaf) {
  require(!in_leaf_, "leaf_out_of_order",
          "leaf " + std::to_string(leaf) + " begins before the one before it has ended");
  require(!done(), "leaf_out_of_order", "leaf " + std::to_string(leaf) + " begins after the last of this rank's step");
  const LeafTurn& turn = turns_[records_.size()];
  require(turn.leaf == leaf, "leaf_out_of_order",
          "leaf " + std::to_string(leaf) + " begins where leaf " + std::to_string(turn.leaf) + " is next on this rank");
  in_leaf_ = true;
  return turn;
}

const LeafTurn& LeafProgress::current() const {
  require(in_leaf_, "leaf_out_of_order", "no leaf has begun");
  return turns_[records_.size()];
}

void LeafProgress::end(const LeafRecord& record) {
  current();
  records_.push_back(record);
  in_leaf_ = false;
}

}  // namespace zerofleet
