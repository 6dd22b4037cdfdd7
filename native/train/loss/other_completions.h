#pragma once

#include <cstdint>
#include <vector>

#include "data/sequence_reader.h"

namespace zerofleet {

/// Picks the completion that KTO puts behind the prompt of a sequence: that of the first sequence with another completion, from the
/// one max(1, ⌊3N/8⌋) places later in the file of N sequences on, wrapping around. It is the same one in each epoch and in each leaf.
/// Sequences next to each other, or half a file apart, often have a prompt in common.
class OtherCompletions {
 public:
  /// `sequences` must outlive this.
  explicit OtherCompletions(const SequenceReader& sequences);

  /// The sequence with that completion; kNoSequence where all completions of the file are equal.
  std::int64_t of(std::int64_t sequence);

 private:
  bool are_equal(std::int64_t one, std::int64_t other);
  /// For each sequence, the first one after it with another completion, wrapping around; kNoSequence where there is none.
  std::vector<std::int64_t> find_next_others();

  const SequenceReader& sequences_;
  LeafBatch pair_;                        // work space of two rows
  std::vector<std::int64_t> next_other_;  // empty before the first sequence that needs it: finding it reads the whole file
};

}  // namespace zerofleet
