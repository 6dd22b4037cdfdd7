#include "model/objective/mismatched_leaf.h"

#include <algorithm>
#include <span>

#include "core/error.h"

namespace zerofleet {
namespace {

struct Sequence {
  std::span<const std::int32_t> tokens, targets;  // (T)
  std::size_t first, end;                         // positions of the targets from the first to the last that counts

  Sequence(const LeafInput& leaf, std::size_t row, std::size_t length)
      : tokens(leaf.tokens.subspan(row * length, length)), targets(leaf.targets.subspan(row * length, length)) {
    const auto counts = [](std::int32_t target) { return target >= 0; };
    first = static_cast<std::size_t>(std::ranges::find_if(targets, counts) - targets.begin());
    end = length;
    while (end > first && !counts(targets[end - 1])) --end;
  }
  bool empty() const { return first == targets.size(); }
  /// Its completion without the last token, and what counts of it with the last token.
  std::span<const std::int32_t> completion() const {
    return tokens.subspan(first, end - first).subspan(empty() ? 0 : 1);
  }
  std::span<const std::int32_t> completion_targets() const { return targets.subspan(first, end - first); }
};

}  // namespace

// Token i + 1 is the target of position i: the prompt is tokens 0 to `first`, the completion begins with the token
// behind it.
MismatchedLeaf mismatched_leaf(const LeafInput& prompts, const LeafInput& completions, std::int64_t batch) {
  const auto rows = static_cast<std::size_t>(batch);
  const std::size_t numel = prompts.tokens.size();
  require(batch >= 1 && numel % rows == 0 && prompts.targets.size() == numel && completions.tokens.size() == numel &&
              completions.targets.size() == numel,
          "invalid_argument", "both leaves have as many tokens as targets, the same number in each sequence");
  const std::size_t length = numel / rows;
  MismatchedLeaf result{std::vector<std::int32_t>(numel), std::vector<std::int32_t>(numel, -100)};
  for (std::size_t row = 0; row < rows; ++row) {
    const Sequence mine(prompts, row, length), next(completions, row, length);
    if (mine.empty() || next.empty()) continue;
    const std::span tokens = std::span(result.tokens).subspan(row * length, length);
    const std::span targets = std::span(result.targets).subspan(row * length, length);
    std::ranges::copy(mine.tokens.first(mine.first + 1), tokens.begin());
    const std::size_t count = std::min(next.end - next.first, length - mine.first);
    std::ranges::copy(next.targets.subspan(next.first, count),
                      targets.begin() + static_cast<std::ptrdiff_t>(mine.first));
    std::ranges::copy(next.tokens.subspan(next.first + 1, count - 1),
                      tokens.begin() + static_cast<std::ptrdiff_t>(mine.first) + 1);
  }
  return result;
}

bool have_same_completion(const LeafInput& pair) {
  const std::size_t length = pair.tokens.size() / 2;
  const Sequence one(pair, 0, length), other(pair, 1, length);
  return std::ranges::equal(one.completion_targets(), other.completion_targets()) &&
         std::ranges::equal(one.completion(), other.completion());
}

}  // namespace zerofleet
