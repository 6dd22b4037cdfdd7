#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/common/block.h"

namespace zerofleet {

/// The rows of a leaf that the output projection computes: those with a target. Other rows have no loss, and their
/// gradients are zeros.
///
/// Rows 2i and 2i + 1 are taken together, because CPU products of bf16 add pairs of rows. Leaving out pairs that add
/// zeros keeps the bits of the weight's gradient. At least one row without a target is among them, unless all rows are
/// taken.
class TargetRows {
 public:
  /// targets: (M) of a leaf of `shape`. The number of rows is a multiple of `unit`, which is even, or M.
  TargetRows(std::span<const std::int32_t> targets, const PassShape& shape, std::int64_t unit);

  /// True if these are all rows of the leaf, in order.
  bool are_all() const { return indices_.empty(); }
  /// (N) the leaf's row of each row.
  std::span<const std::int32_t> rows() const { return rows_; }
  /// (N) targets, and the sequence of each row.
  const std::vector<std::int32_t>& targets() const { return targets_; }
  std::span<const std::int32_t> sequences() const { return sequences_; }
  /// (M) index of each row of the leaf among these rows. The index of a row that was left out is that of a row without
  /// a target. Empty with are_all().
  std::span<const std::int32_t> indices() const { return indices_; }

 private:
  void add(std::int32_t row, std::int32_t target) {
    rows_.push_back(row);
    targets_.push_back(target);
  }
  void find_sequences(const PassShape& shape);
  void find_indices(std::size_t num_rows);

  std::vector<std::int32_t> rows_, targets_, sequences_, indices_;
};

}  // namespace zerofleet
