#include "train/loss/other_completions.h"

#include <algorithm>
#include <cstddef>

#include "model/objective/mismatched_leaf.h"
#include "train/loss/training_loss.h"

namespace zerofleet {

OtherCompletions::OtherCompletions(const SequenceReader& sequences) : sequences_(sequences) {
  sequences_.resize(pair_, 2);
}

std::int64_t OtherCompletions::completion_of(std::int64_t sequence) {
  const std::int64_t count = sequences_.num_sequences();
  const std::int64_t first = (sequence + std::max<std::int64_t>(1, count * 3 / 8)) % count;
  if (!are_equal(sequence, first)) return first;
  if (next_other_.empty()) next_other_ = find_next_others();
  return next_other_[static_cast<std::size_t>(first)];
}

bool OtherCompletions::are_equal(std::int64_t one, std::int64_t other) {
  sequences_.read(one, 0, pair_);
  sequences_.read(other, 1, pair_);
  return have_same_completion(input_of(pair_));
}

// Goes backward from a sequence whose successor has another completion. Each sequence compares with its successor
// alone: where both are equal, the first one with another completion is the same for both.
std::vector<std::int64_t> OtherCompletions::find_next_others() {
  const std::int64_t count = sequences_.num_sequences();
  std::vector<std::int64_t> result(static_cast<std::size_t>(count), kNoSequence);
  const auto next = [&](std::int64_t sequence) { return (sequence + 1) % count; };
  std::int64_t last = 0;
  while (last < count && are_equal(last, next(last))) ++last;
  if (last == count) return result;
  for (std::int64_t back = 0; back < count; ++back) {
    const std::int64_t sequence = (last - back + count) % count, after = next(sequence);
    result[static_cast<std::size_t>(sequence)] =
        are_equal(sequence, after) ? result[static_cast<std::size_t>(after)] : after;
  }
  return result;
}

}  // namespace zerofleet
