#include "zero/exchange/bucket_order.h"

#include <algorithm>
#include <utility>

namespace zerofleet {

BucketOrder::BucketOrder(std::vector<BucketId> order, Post post)
    : order_(std::move(order)), post_(std::move(post)), waiting_(order_.size()), is_full_(order_.size(), false) {
  for (std::size_t place = 0; place < order_.size(); ++place) {
    const BucketId& id = order_[place];
    places_.resize(std::max(places_.size(), id.part + 1));
    auto& of_part = places_[id.part];
    of_part.resize(std::max(of_part.size(), static_cast<std::size_t>(id.bucket) + 1));
    of_part[static_cast<std::size_t>(id.bucket)] = place;
  }
}

void BucketOrder::begin() {
  is_full_.assign(order_.size(), false);
  next_ = 0;
}

void BucketOrder::add(const BucketId& id, Buffer contents) {
  const std::size_t place = places_[id.part][static_cast<std::size_t>(id.bucket)];
  waiting_[place] = std::move(contents);
  is_full_[place] = true;
  while (next_ < order_.size() && is_full_[next_]) {
    const std::size_t turn = next_++;
    post_(order_[turn], std::exchange(waiting_[turn], Buffer()));
  }
}

bool BucketOrder::waits_for_others(std::size_t part) const {
  bool behind_others = false;
  for (std::size_t place = next_; place < order_.size(); ++place) {
    const bool is_own = order_[place].part == part;
    if (is_own && !is_full_[place]) return false;  // later buckets wait for the part itself
    if (is_own && behind_others) return true;
    behind_others = behind_others || (!is_own && !is_full_[place]);
  }
  return false;
}

}  // namespace zerofleet
