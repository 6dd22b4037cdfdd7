#include "train/loss/other_completions.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "test/data/written_tokens.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kCompletionLength = 8;

/// A file of one sequence for each letter: prompts of different lengths, and the completions that the letters name.
struct CompletionsFile {
  explicit CompletionsFile(const std::string& letters)
      : file(bytes_of(tables(letters))), sequences({file.path()}, kCompletionLength, 300) {}

  static TokenTables tables(const std::string& letters) {
    TokenTables tables;
    tables.sequence_length = kCompletionLength;
    tables.documents.clear();
    for (std::size_t sequence = 0; sequence < letters.size(); ++sequence) {
      tables.sequences.push_back(tables.tokens.size());
      tables.documents.push_back(tables.tokens.size());
      for (std::size_t position = 0; position < 1 + sequence % 3; ++position) {
        tables.tokens.push_back(static_cast<std::uint32_t>(1 + sequence));
        tables.counts.push_back(false);
      }
      // The completion's second token is no target, as a tool's answer is not.
      for (const char letter : {letters[sequence], '-', letters[sequence]}) {
        tables.tokens.push_back(static_cast<std::uint32_t>(letter));
        tables.counts.push_back(letter != '-');
      }
    }
    return tables;
  }

  TemporaryFile file;
  SequenceReader sequences;
};

/// The definition, word by word.
std::int64_t expected_other(const std::string& letters, std::size_t sequence) {
  const std::size_t count = letters.size(), first = sequence + std::max<std::size_t>(1, count * 3 / 8);
  for (std::size_t position = first; position < first + count; ++position) {
    if (letters[position % count] != letters[sequence]) return static_cast<std::int64_t>(position % count);
  }
  return kNoSequence;
}

}  // namespace

TEST_CASE("preferences: KTO's other completion is never equal to that of the sequence, whatever rows are equal") {
  for (const std::string letters :
       {"abcdefgh", "abababab", "aaaaaaab", "aabbaacc", "aaaaaaaa", "baaaaaaaaaab", "ab", "aa", "a"}) {
    CAPTURE(letters);
    const CompletionsFile file(letters);
    OtherCompletions others(file.sequences);
    for (std::size_t sequence = 0; sequence < letters.size(); ++sequence) {
      CAPTURE(sequence);
      CHECK(others.completion_of(static_cast<std::int64_t>(sequence)) == expected_other(letters, sequence));
    }
  }
}
