#include "model/transformer/trimmed_leaf.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace zerofleet {
namespace {

/// Returns how many tokens of a sequence matter.
std::int64_t needed_tokens(const LeafInput& leaf, const PassShape& shape, std::int64_t sequence, bool routed) {
  std::int64_t count = leaf.lengths.empty() ? shape.length : leaf.lengths[static_cast<std::size_t>(sequence)];
  if (routed) return count;
  const std::int64_t first = sequence * shape.length;
  while (count > 0 && leaf.targets[static_cast<std::size_t>(first + count - 1)] < 0) --count;
  return count;
}

}  // namespace

TrimmedLeaf::TrimmedLeaf(const LeafInput& leaf, const PassShape& shape, bool routed, Lengths lengths)
    : input_(leaf), shape_(shape) {
  std::vector<std::int64_t> counts;
  bool has_documents = false;
  for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    const std::int64_t count = needed_tokens(leaf, shape, sequence, routed);
    counts.push_back(count);
    if (count == 0 || leaf.document_starts.empty()) continue;
    // They never fall within a sequence.
    has_documents |= leaf.document_starts[static_cast<std::size_t>(sequence * shape.length + count - 1)] > 0;
  }
  if (!has_documents) input_.document_starts = {};
  set_shape(counts, lengths);
  // Lengths that leave no token out say nothing.
  if (std::accumulate(leaf.lengths.begin(), leaf.lengths.end(), std::int64_t{0}) == shape_.rows()) input_.lengths = {};
  if (shape_.rows() == shape.rows()) return;
  input_.tokens = cut(leaf.tokens, shape.length, tokens_);
  input_.targets = cut(leaf.targets, shape.length, targets_);
  input_.document_starts = cut(input_.document_starts, shape.length, document_starts_);
}

// A leaf without targets has one token of each sequence, because a pass has rows.
void TrimmedLeaf::set_shape(std::span<const std::int64_t> counts, Lengths lengths) {
  const std::int64_t longest = std::max<std::int64_t>(1, std::ranges::max(counts));
  if (lengths == Lengths::kCommon) {
    shape_.length = std::min(shape_.length, (longest + kCommonUnit - 1) / kCommonUnit * kCommonUnit);
    return;
  }
  shape_.length = longest;
  const auto [least, most] = std::ranges::minmax(counts);
  if (least == most) return;
  std::partial_sum(counts.begin(), counts.end(), std::back_inserter(ends_));
  shape_.ends = ends_;
}

void TrimmedLeaf::put_positions(std::span<std::int32_t> positions) const {
  const std::span<const std::int32_t> starts = input_.document_starts;
  std::size_t row = 0;
  for (std::int64_t sequence = 0; sequence < shape_.batch; ++sequence) {
    const std::int64_t length = shape_.end(sequence) - shape_.begin(sequence);
    for (std::int32_t position = 0; position < length; ++position, ++row) {
      positions[row] = position - (starts.empty() ? 0 : starts[row]);
    }
  }
}

std::span<const std::int32_t> TrimmedLeaf::cut(std::span<const std::int32_t> values, std::int64_t length,
                                               std::vector<std::int32_t>& copies) const {
  if (values.empty() || shape_.batch == 1) {
    return values.first(std::min(values.size(), static_cast<std::size_t>(shape_.rows())));
  }
  for (std::int64_t sequence = 0; sequence < shape_.batch; ++sequence) {
    const std::int64_t count = shape_.end(sequence) - shape_.begin(sequence);
    const auto here = values.subspan(static_cast<std::size_t>(sequence * length), static_cast<std::size_t>(count));
    copies.insert(copies.end(), here.begin(), here.end());
  }
  return copies;
}

}  // namespace zerofleet
