#include "model/transformer/trimmed_leaf.h"

#include <algorithm>

namespace zerofleet {
namespace {

/// Returns how many tokens of a sequence matter.
std::int64_t needed_tokens(const LeafInput& leaf, const PassShape& shape, std::int64_t sequence, bool routed) {
  const auto first = static_cast<std::size_t>(sequence * shape.length);
  std::int64_t count = shape.length;
  while (count > 0 && leaf.targets[first + static_cast<std::size_t>(count) - 1] < 0) --count;
  if (!routed) return count;
  return std::max<std::int64_t>(count,
                                leaf.lengths.empty() ? shape.length : leaf.lengths[static_cast<std::size_t>(sequence)]);
}

}  // namespace

TrimmedLeaf::TrimmedLeaf(const LeafInput& leaf, const PassShape& shape, bool routed) : input_(leaf), shape_(shape) {
  std::int64_t needed = 1;
  bool has_documents = false;
  for (std::int64_t sequence = 0; sequence < shape.batch; ++sequence) {
    const std::int64_t count = needed_tokens(leaf, shape, sequence, routed);
    needed = std::max(needed, count);
    if (count == 0 || leaf.document_starts.empty()) continue;
    // They never fall within a sequence.
    has_documents |= leaf.document_starts[static_cast<std::size_t>(sequence * shape.length + count - 1)] > 0;
  }
  if (!has_documents) input_.document_starts = {};
  shape_.length = std::min(shape.length, (needed + kLengthUnit - 1) / kLengthUnit * kLengthUnit);
  if (shape_.length == shape.length) return;
  input_.tokens = cut(leaf.tokens, shape.length, tokens_);
  input_.targets = cut(leaf.targets, shape.length, targets_);
  input_.document_starts = cut(input_.document_starts, shape.length, document_starts_);
}

std::span<const std::int32_t> TrimmedLeaf::cut(std::span<const std::int32_t> values, std::int64_t length,
                                               std::vector<std::int32_t>& copies) const {
  const auto kept = static_cast<std::size_t>(shape_.length);
  if (values.empty() || shape_.batch == 1) return values.first(std::min(values.size(), kept));
  for (std::int64_t sequence = 0; sequence < shape_.batch; ++sequence) {
    const auto here = values.subspan(static_cast<std::size_t>(sequence * length), kept);
    copies.insert(copies.end(), here.begin(), here.end());
  }
  return copies;
}

}  // namespace zerofleet
