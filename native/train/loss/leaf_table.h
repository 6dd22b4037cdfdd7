#pragma once

#include <concepts>
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
      : LeafTable(leaves_of_ranks, [width](std::int64_t) { return width; }) {}

  /// width_of(leaf): records of a leaf.
  template <std::invocable<std::int64_t> WidthOf>
  LeafTable(std::span<const std::vector<std::int64_t>> leaves_of_ranks, const WidthOf& width_of) {
    std::int64_t num_leaves = 0, index = 0;
    for (const auto& leaves : leaves_of_ranks) num_leaves += std::ssize(leaves);
    leaves_.resize(static_cast<std::size_t>(num_leaves));
    constexpr auto kBytes = static_cast<std::int64_t>(sizeof(Record));
    for (const auto& leaves : leaves_of_ranks) {
      const std::int64_t begin = index;
      for (const std::int64_t leaf : leaves) {
        leaves_[static_cast<std::size_t>(leaf)] = {index, index + width_of(leaf)};
        index += width_of(leaf);
      }
      pieces_.push_back({begin * kBytes, index * kBytes});
    }
    records_.resize(static_cast<std::size_t>(index));
  }

  std::int64_t num_leaves() const { return std::ssize(leaves_); }

  /// Returns the records of a leaf, (its width).
  std::span<Record> leaf(std::int64_t leaf) {
    const Range& range = leaves_[static_cast<std::size_t>(leaf)];
    return std::span(records_).subspan(static_cast<std::size_t>(range.begin), static_cast<std::size_t>(range.size()));
  }

  /// Must be called on every rank at once. Throws errors of the communicator.
  void exchange(Communicator& ranks) { ranks.all_gather(std::as_writable_bytes(std::span(records_)), pieces_); }

 private:
  std::vector<Range> leaves_;  // records of each leaf; those of a rank's leaves are consecutive
  std::vector<Range> pieces_;  // bytes of each rank
  std::vector<Record> records_;
};

}  // namespace zerofleet
