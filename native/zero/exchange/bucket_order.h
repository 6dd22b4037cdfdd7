#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/device/buffer.h"

namespace zerofleet {

/// A bucket of a part of the model.
struct BucketId {
  std::size_t part = 0;
  std::int64_t bucket = 0;

  friend bool operator==(const BucketId&, const BucketId&) = default;
};

/// Keeps the order in which ranks exchange buckets, which is the same on all ranks. Gradients may arrive in any order;
/// a full bucket waits here for those before it.
class BucketOrder {
 public:
  using Post = std::function<void(const BucketId& id, Buffer contents)>;

  BucketOrder() = default;
  /// `order`: every bucket of every part, once.
  BucketOrder(std::vector<BucketId> order, Post post);

  const std::vector<BucketId>& order() const { return order_; }
  /// Begins an exchange of all buckets.
  void begin();
  /// Adds a full bucket. Posts it, and waiting ones after it, if it is the next in order.
  void add(const BucketId& id, Buffer contents);
  /// Returns true if a full bucket of `part` waits for one of another part.
  bool waits_for_others(std::size_t part) const;

 private:
  std::vector<BucketId> order_;
  Post post_;
  std::vector<std::vector<std::size_t>> indices_;  // part, bucket → index in the order
  std::vector<Buffer> waiting_;                    // by index in the order
  std::vector<bool> is_full_;
  std::size_t next_ = 0;
};

}  // namespace zerofleet
