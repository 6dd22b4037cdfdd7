#pragma once

#include <cstdint>
#include <vector>

#include "data/sequence_reader.h"

namespace zerofleet {

/// Finds, for KTO, another completion to put after the prompt of a sequence.
///
/// It is the first different completion in the data from max(1, ⌊3N/8⌋) sequences later on, wrapping around after N
/// sequences. The choice is the same in each epoch and leaf. The distance avoids sequences with the same prompt, which
/// are often neighbours or half a file apart.
class OtherCompletions {
 public:
  /// `sequences` must outlive this.
  explicit OtherCompletions(const SequenceReader& sequences);

  /// Returns the sequence with the other completion; kNoSequence if all completions of the file are equal.
  std::int64_t completion_of(std::int64_t sequence);

 private:
  bool are_equal(std::int64_t one, std::int64_t other);
  /// Returns for each sequence the next one with another completion, wrapping around; kNoSequence if there is none.
  std::vector<std::int64_t> find_next_others();

  const SequenceReader& sequences_;
  LeafBatch pair_;                        // scratch memory for two rows
  std::vector<std::int64_t> next_other_;  // computed at the first use, because that reads the whole file
};

}  // namespace zerofleet
