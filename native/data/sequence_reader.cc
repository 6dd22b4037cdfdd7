#include "data/sequence_reader.h"

#include <algorithm>
#include <cstddef>

#include "core/error.h"
#include "data/mapped_read.h"

namespace zerofleet {

std::span<const std::int32_t> LeafBatch::documents() const {
  const bool several = std::ranges::any_of(document_starts, [](std::int32_t start) { return start > 0; });
  return several ? std::span(document_starts) : std::span<const std::int32_t>{};
}

std::span<const std::int32_t> LeafBatch::padded_lengths() const {
  const auto full = static_cast<std::int32_t>(lengths.empty() ? 0 : tokens.size() / lengths.size());
  const bool is_padded = std::ranges::any_of(lengths, [&](std::int32_t length) { return length < full; });
  return is_padded ? std::span(lengths) : std::span<const std::int32_t>{};
}

SequenceReader::SequenceReader(const std::vector<std::string>& paths, std::int64_t sequence_length,
                               std::int64_t vocab_size, std::int64_t unit_sequences)
    : length_(sequence_length), vocab_size_(vocab_size) {
  require(!paths.empty(), "invalid_argument", "there is no token file");
  for (const std::string& path : paths) {
    const TokenFile& file = files_.emplace_back(path);
    require(file.sequence_length() == length_, "token_file_invalid",
            "the token file has sequences of " + std::to_string(file.sequence_length()) +
                " tokens, the training reads " + std::to_string(length_) + "; prepare the data again");
    const auto count = static_cast<std::int64_t>(file.sequences().size());
    require(count % unit_sequences == 0, "token_file_invalid",
            "the token file has " + std::to_string(count) + " sequences, the training reads " +
                std::to_string(unit_sequences) + " at once; prepare the data again");
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + count);
  }
}

std::int32_t SequenceReader::token_at(const TokenFile& file, std::int64_t position) const {
  const std::uint32_t token = file.token(position);
  require(token < static_cast<std::uint64_t>(vocab_size_), "token_out_of_vocab",
          "token " + std::to_string(token) + " is outside the vocabulary of " + std::to_string(vocab_size_) +
              "; train a model with a larger vocab_size, or use its own tokenizer");
  return static_cast<std::int32_t>(token);
}

void SequenceReader::resize(LeafBatch& batch, std::int64_t rows) const {
  const auto count = static_cast<std::size_t>(rows * length_);
  batch.tokens.resize(count);
  batch.targets.resize(count);
  batch.document_starts.resize(count);
  batch.lengths.resize(static_cast<std::size_t>(rows));
  batch.sequences.resize(static_cast<std::size_t>(rows));
}

SequenceReader::Extent SequenceReader::extent_of(std::int64_t sequence) const {
  const auto number = static_cast<std::size_t>(std::ranges::upper_bound(ends_, sequence) - ends_.begin());
  const TokenFile& file = files_[number];
  const auto sequences = file.sequences();
  const auto index = static_cast<std::size_t>(sequence - (number == 0 ? 0 : ends_[number - 1]));
  const auto begin = static_cast<std::int64_t>(sequences[index]);
  const std::int64_t next =
      index + 1 < sequences.size() ? static_cast<std::int64_t>(sequences[index + 1]) : file.num_tokens();
  return {file, begin, std::min(length_, next - begin), std::ranges::upper_bound(file.documents(), sequences[index])};
}

bool SequenceReader::starts_at(const Extent& extent, std::int64_t position) const {
  return extent.document != extent.file.documents().end() && static_cast<std::int64_t>(*extent.document) == position;
}

/// extent.document is the first one that starts behind the token before the target.
bool SequenceReader::counts(const Extent& extent, std::int64_t target) const {
  return target < extent.file.num_tokens() && !starts_at(extent, target) && extent.file.counts_as_target(target);
}

std::int64_t SequenceReader::num_targets(std::int64_t sequence) const {
  std::int64_t count = 0;
  read_mapped([&] { count = count_targets(sequence); });
  return count;
}

std::int64_t SequenceReader::count_targets(std::int64_t sequence) const {
  Extent extent = extent_of(sequence);
  std::int64_t count = 0;
  for (std::int64_t position = extent.begin; position < extent.begin + extent.num_inputs; ++position) {
    if (starts_at(extent, position)) ++extent.document;
    count += counts(extent, position + 1) ? 1 : 0;
  }
  return count;
}

void SequenceReader::read(std::int64_t sequence, std::int64_t row, LeafBatch& batch) const {
  read_mapped([&] { copy_sequence(sequence, row, batch); });
  batch.sequences[static_cast<std::size_t>(row)] = sequence;
}

bool SequenceReader::label(std::int64_t sequence) const {
  bool label = false;
  read_mapped([&] {
    const Extent extent = extent_of(sequence);
    label = extent.file.counts_as_target(extent.begin);
  });
  return label;
}

void SequenceReader::copy_sequence(std::int64_t sequence, std::int64_t row, LeafBatch& batch) const {
  Extent extent = extent_of(sequence);
  batch.lengths[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(extent.num_inputs);
  std::int64_t start = 0;  // documents before extent.document started outside
  for (std::int64_t i = 0; i < length_; ++i) {
    const auto out = static_cast<std::size_t>(row * length_ + i);
    if (i >= extent.num_inputs) {
      batch.tokens[out] = 0;
      batch.targets[out] = kIgnoredTarget;
      batch.document_starts[out] = static_cast<std::int32_t>(extent.num_inputs);
      continue;
    }
    const std::int64_t position = extent.begin + i;
    if (starts_at(extent, position)) {
      start = i;
      ++extent.document;
    }
    batch.tokens[out] = token_at(extent.file, position);
    batch.targets[out] = counts(extent, position + 1) ? token_at(extent.file, position + 1) : kIgnoredTarget;
    batch.document_starts[out] = static_cast<std::int32_t>(start);
  }
}

void SequenceReader::clear(std::int64_t row, LeafBatch& batch) const {
  const auto begin = static_cast<std::ptrdiff_t>(row * length_);
  std::fill_n(batch.tokens.begin() + begin, length_, 0);
  std::fill_n(batch.targets.begin() + begin, length_, kIgnoredTarget);
  std::fill_n(batch.document_starts.begin() + begin, length_, 0);
  batch.lengths[static_cast<std::size_t>(row)] = 0;
  batch.sequences[static_cast<std::size_t>(row)] = kNoSequence;
}

}  // namespace zerofleet
