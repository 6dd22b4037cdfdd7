#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "comm/communicator.h"
#include "core/range.h"

namespace zerofleet {

/// Records of all leaves. Each rank fills in those of its leaves. After exchange() every rank has all of them, and
/// folds them in leaf order.
template <class Record>
class LeafTable {
  static_assert(std::is_trivially_copyable_v<Record>);

 public:
  /// `leaves_of_ranks`: the leaves of each rank; every leaf occurs once. `width`: records per leaf.
  explicit LeafTable(std::span<const std::vector<std::int64_t>> leaves_of_ranks, std::int64_t width = 1)
      : width_(width) {
    std::int64_t num_leaves = 0;
    for (const auto& leaves : leaves_of_ranks) num_leaves += std::ssize(leaves);
    indices_.resize(static_cast<std::size_t>(num_leaves));
    std::int64_t index = 0;
    for (const auto& leaves : leaves_of_ranks) {
      const std::int64_t begin = index;
      for (const std::int64_t leaf : leaves) indices_[static_cast<std::size_t>(leaf)] = index++;
      const auto bytes = static_cast<std::int64_t>(sizeof(Record)) * width;
      pieces_.push_back({begin * bytes, index * bytes});
    }
    records_.resize(static_cast<std::size_t>(num_leaves * width));
  }

  std::int64_t num_leaves() const { return std::ssize(indices_); }

  /// Returns the records of a leaf, (width).
  std::span<Record> leaf(std::int64_t leaf) {
    const auto first = static_cast<std::size_t>(indices_[static_cast<std::size_t>(leaf)] * width_);
    return std::span(records_).subspan(first, static_cast<std::size_t>(width_));
  }

  /// Must be called on every rank at once. Throws errors of the communicator.
  void exchange(Communicator& ranks) { ranks.all_gather(std::as_writable_bytes(std::span(records_)), pieces_); }

 private:
  std::int64_t width_;
  std::vector<std::int64_t> indices_;  // by leaf; the leaves of a rank are consecutive
  std::vector<Range> pieces_;          // bytes of each rank
  std::vector<Record> records_;
};

}  // namespace zerofleet
