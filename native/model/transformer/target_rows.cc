#include "model/transformer/target_rows.h"

#include <algorithm>
#include <iterator>

namespace zerofleet {
namespace {

constexpr std::int32_t kNoTarget = -100;

}  // namespace

TargetRows::TargetRows(std::span<const std::int32_t> targets, const PassShape& shape, std::int64_t unit) {
  const auto num_rows = static_cast<std::int32_t>(targets.size());
  const auto target = [&](std::int32_t row) { return targets[static_cast<std::size_t>(row)]; };
  for (std::int32_t row = 0; row < num_rows; row += 2) {
    const std::int32_t end = std::min(row + 2, num_rows);
    if (target(row) < 0 && target(end - 1) < 0) continue;
    for (std::int32_t each = row; each < end; ++each) add(each, target(each));
  }
  const bool has_other = std::ranges::any_of(targets_, [](std::int32_t each) { return each < 0; });
  const auto wanted = (std::ssize(rows_) + (has_other ? 0 : 1) + unit - 1) / unit * unit;
  if (wanted < num_rows) {
    while (std::ssize(rows_) < wanted) add(0, kNoTarget);
    find_indices(targets.size());
  } else {
    rows_.clear();
    targets_.clear();
    for (std::int32_t row = 0; row < num_rows; ++row) add(row, target(row));
  }
  find_sequences(shape);
}

void TargetRows::find_sequences(const PassShape& shape) {
  std::vector<std::int32_t> sequence_of;
  for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    sequence_of.resize(static_cast<std::size_t>(shape.end(sequence)), static_cast<std::int32_t>(sequence));
  }
  for (const std::int32_t row : rows_) sequences_.push_back(sequence_of[static_cast<std::size_t>(row)]);
}

void TargetRows::find_indices(std::size_t num_rows) {
  const auto other = std::ranges::find_if(targets_, [](std::int32_t target) { return target < 0; });
  indices_.assign(num_rows, static_cast<std::int32_t>(other - targets_.begin()));
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    if (targets_[index] >= 0) indices_[static_cast<std::size_t>(rows_[index])] = static_cast<std::int32_t>(index);
  }
}

}  // namespace zerofleet
