#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/token_file.h"

namespace zerofleet {

/// A target that does not count.
constexpr std::int32_t kIgnoredTarget = -100;

/// Number of the sequence of a row that has none.
constexpr std::int64_t kNoSequence = -1;

/// Input of a leaf, each array (B, T) row-major unless stated otherwise.
struct LeafBatch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;          // the tokens after them, or kIgnoredTarget
  std::vector<std::int32_t> document_starts;  // position within its sequence where the document of a token starts
  std::vector<std::int32_t> lengths;          // (B) tokens of each sequence; the rest is padding
  std::vector<std::int64_t> sequences;        // (B) number of each in its reader, or kNoSequence

  /// Document starts in the model's format: empty where every sequence is of one document.
  std::span<const std::int32_t> documents() const;
  /// Likewise: empty where no sequence has padding.
  std::span<const std::int32_t> padded_lengths() const;
};

/// The sequences of token files, one file after the other, as the model reads them. A sequence has T inputs from its
/// position in its file on, but ends before the next sequence. The positions behind its end are token 0, a document of
/// their own, and are no targets. Input i's target is token i + 1, unless that begins another document or the loss mask
/// leaves it out. Throws Error{"token_file_invalid"} for a file of other sequences than of T, or without whole units.
/// Throws Error{"token_out_of_vocab"}. While it reads, throws Error{"token_file_unreadable"} where the file's bytes are
/// not there any more.
class SequenceReader {
 public:
  SequenceReader(const std::vector<std::string>& paths, std::int64_t sequence_length, std::int64_t vocab_size,
                 std::int64_t unit_sequences = 1);

  /// Number of the sequences of all files.
  std::int64_t num_sequences() const { return ends_.back(); }
  /// Number of the sequences of one file.
  std::int64_t sequences_of(std::size_t file) const {
    return static_cast<std::int64_t>(files_[file].sequences().size());
  }

  /// Makes room for `rows` sequences.
  void resize(LeafBatch& batch, std::int64_t rows) const;
  /// Fills one row of a batch with a sequence.
  void read(std::int64_t sequence, std::int64_t row, LeafBatch& batch) const;
  /// Number of targets of a sequence.
  std::int64_t num_targets(std::int64_t sequence) const;
  /// Label of a sequence: the bit of the loss mask for its first token, which is no target.
  bool label(std::int64_t sequence) const;
  /// Fills one row with positions that do not count.
  void clear(std::int64_t row, LeafBatch& batch) const;

 private:
  /// Location of a sequence, and the first document that starts behind its first token.
  struct Extent {
    const TokenFile& file;
    std::int64_t begin, num_inputs;
    std::span<const std::uint64_t>::iterator document;
  };
  /// These read the mapped file.
  std::int64_t count_targets(std::int64_t sequence) const;
  void copy_sequence(std::int64_t sequence, std::int64_t row, LeafBatch& batch) const;
  Extent extent_of(std::int64_t sequence) const;
  bool starts_at(const Extent& extent, std::int64_t position) const;
  bool counts(const Extent& extent, std::int64_t target) const;
  std::int32_t token_at(const TokenFile& file, std::int64_t position) const;

  std::vector<TokenFile> files_;
  std::vector<std::int64_t> ends_;  // number of the sequences of each file and those before it
  std::int64_t length_;
  std::int64_t vocab_size_;
};

}  // namespace zerofleet
