#include "model/objective/mismatched_leaf.h"

#include <algorithm>
#include <span>

#include "core/error.h"

namespace zerofleet {
namespace {

struct Sequence {
  std::span<const std::int32_t> tokens, targets;  // (T)
  std::size_t first, end;                         // places of the targets from the first to the last that counts

  Sequence(const LeafInput& leaf, std::size_t row, std::size_t length)
      : tokens(leaf.tokens.subspan(row * length, length)), targets(leaf.targets.subspan(row * length, length)) {
    const auto counts = [](std::int32_t target) { return target >= 0; };
    first = static_cast<std::size_t>(std::ranges::find_if(targets, counts) - targets.begin());
    end = length;
    while (end > first && !counts(targets[end - 1])) --end;
  }
  bool empty() const { return first == targets.size(); }
};

}  // namespace

// Token i + 1 is the target of place i: the prompt is tokens 0 to `first`, the completion begins with the token behind it.
MismatchedLeaf mismatched_leaf(const LeafInput& leaf, std::int64_t batch) {
  const auto rows = static_cast<std::size_t>(batch);
  require(batch >= 2, "invalid_argument", "KTO mismatches the sequences of a leaf, which needs at least 2; raise micro_batch_size");
  require(leaf.tokens.size() == leaf.targets.size() && leaf.tokens.size() % rows == 0, "invalid_argument",
          "a leaf has as many tokens as targets, the same number in each sequence");
  const std::size_t length = leaf.tokens.size() / rows;
  MismatchedLeaf result{std::vector<std::int32_t>(leaf.tokens.size()), std::vector<std::int32_t>(leaf.tokens.size(), -100)};
  for (std::size_t row = 0; row < rows; ++row) {
    const Sequence mine(leaf, row, length), next(leaf, (row + 1) % rows, length);
    if (mine.empty() || next.empty()) continue;
    const std::span tokens = std::span(result.tokens).subspan(row * length, length);
    const std::span targets = std::span(result.targets).subspan(row * length, length);
    std::ranges::copy(mine.tokens.first(mine.first + 1), tokens.begin());
    const std::size_t count = std::min(next.end - next.first, length - mine.first);
    std::ranges::copy(next.targets.subspan(next.first, count), targets.begin() + static_cast<std::ptrdiff_t>(mine.first));
    std::ranges::copy(next.tokens.subspan(next.first + 1, count - 1), tokens.begin() + static_cast<std::ptrdiff_t>(mine.first) + 1);
  }
  return result;
}

}  // namespace zerofleet
