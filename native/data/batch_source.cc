#include "data/batch_source.h"

#include <cstddef>

#include "core/error.h"

namespace zerofleet {
namespace {

std::int64_t count_sequences(const TokenFile& file, const BatchShape& shape) {
  const auto num_tokens = static_cast<std::int64_t>(file.tokens().size());
  require(shape.sequence_length >= 1 && num_tokens > shape.sequence_length, "sequence_longer_than_data",
          "a sequence of " + std::to_string(shape.sequence_length) + " tokens and its last target need " +
              std::to_string(shape.sequence_length + 1) + " tokens, the data has " + std::to_string(num_tokens));
  return (num_tokens - 1) / shape.sequence_length;
}

}  // namespace

BatchSource::BatchSource(const std::string& token_path, const BatchShape& shape, std::int64_t vocab_size,
                         std::uint64_t seed)
    : file_(token_path), shape_(shape), vocab_size_(vocab_size), permutation_(seed, count_sequences(file_, shape)) {
  require(shape.micro_batch_size >= 1 && shape.global_batch_size >= 1 &&
              shape.global_batch_size % shape.micro_batch_size == 0,
          "micro_batch_not_divisor",
          "micro_batch_size " + std::to_string(shape.micro_batch_size) + " does not divide global_batch_size " +
              std::to_string(shape.global_batch_size));
}

void BatchSource::load(std::int64_t step, std::int64_t leaf, LeafBatch& batch) const {
  const std::int64_t length = shape_.sequence_length;
  const auto num_targets = static_cast<std::size_t>(shape_.micro_batch_size * length);
  batch.tokens.resize(num_targets);
  batch.targets.resize(num_targets);
  for (std::int64_t row = 0; row < shape_.micro_batch_size; ++row) {
    const std::int64_t place = step * shape_.global_batch_size + leaf * shape_.micro_batch_size + row;
    const std::int64_t epoch = place / permutation_.num_samples();
    const std::int64_t sequence = permutation_.at(epoch, place % permutation_.num_samples());
    const std::uint16_t* source = file_.tokens().data() + sequence * length;
    for (std::int64_t i = 0; i <= length; ++i) {
      require(source[i] < vocab_size_, "token_out_of_vocab",
              "token " + std::to_string(source[i]) + " is outside the vocabulary of " + std::to_string(vocab_size_));
    }
    for (std::int64_t i = 0; i < length; ++i) {
      batch.tokens[static_cast<std::size_t>(row * length + i)] = source[i];
      batch.targets[static_cast<std::size_t>(row * length + i)] = source[i + 1];
    }
  }
}

}  // namespace zerofleet
