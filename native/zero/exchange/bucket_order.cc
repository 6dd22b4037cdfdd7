#include "zero/exchange/bucket_order.h"

#include <algorithm>
#include <utility>

namespace zerofleet {

BucketOrder::BucketOrder(std::vector<BucketId> order, Post post)
    : order_(std::move(order)), post_(std::move(post)), waiting_(order_.size()), is_full_(order_.size(), false) {
  for (std::size_t index = 0; index < order_.size(); ++index) {
    const BucketId& id = order_[index];
    indices_.resize(std::max(indices_.size(), id.part + 1));
    auto& of_part = indices_[id.part];
    of_part.resize(std::max(of_part.size(), static_cast<std::size_t>(id.bucket) + 1));
    of_part[static_cast<std::size_t>(id.bucket)] = index;
  }
}

void BucketOrder::begin() {
  is_full_.assign(order_.size(), false);
  next_ = 0;
}

void BucketOrder::add(const BucketId& id, Buffer contents) {
  const std::size_t index = indices_[id.part][static_cast<std::size_t>(id.bucket)];
  waiting_[index] = std::move(contents);
  is_full_[index] = true;
  while (next_ < order_.size() && is_full_[next_]) {
    const std::size_t next = next_++;
    post_(order_[next], std::exchange(waiting_[next], Buffer()));
  }
}

bool BucketOrder::waits_for_others(std::size_t part) const {
  bool behind_others = false;
  for (std::size_t index = next_; index < order_.size(); ++index) {
    const bool is_own = order_[index].part == part;
    if (is_own && !is_full_[index]) return false;  // later buckets wait for the part itself
    if (is_own && behind_others) return true;
    behind_others = behind_others || (!is_own && !is_full_[index]);
  }
  return false;
}

}  // namespace zerofleet
