#include "data/batch_source.h"

#include "core/error.h"

namespace zerofleet {

BatchSource::BatchSource(const std::string& token_path, const BatchShape& shape, std::int64_t vocab_size,
                         std::uint64_t seed)
    : reader_(token_path, shape.sequence_length, vocab_size), shape_(shape), permutation_(seed, reader_.num_sequences()) {
  require(shape.micro_batch_size >= 1 && shape.global_batch_size >= 1 &&
              shape.global_batch_size % shape.micro_batch_size == 0,
          "micro_batch_not_divisor",
          "micro_batch_size " + std::to_string(shape.micro_batch_size) + " does not divide global_batch_size " +
              std::to_string(shape.global_batch_size));
}

void BatchSource::load(std::int64_t step, std::int64_t leaf, LeafBatch& batch) const {
  reader_.resize(batch, shape_.micro_batch_size);
  for (std::int64_t row = 0; row < shape_.micro_batch_size; ++row) {
    const std::int64_t place = step * shape_.global_batch_size + leaf * shape_.micro_batch_size + row;
    reader_.read(sequence_at(place), row, batch);
  }
}

std::int64_t BatchSource::num_targets(std::int64_t step) const {
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < shape_.global_batch_size; ++j) {
    count += reader_.num_targets(sequence_at(step * shape_.global_batch_size + j));
  }
  return count;
}

std::int64_t BatchSource::sequence_at(std::int64_t place) const {
  return permutation_.at(place / permutation_.num_samples(), place % permutation_.num_samples());
}

}  // namespace zerofleet
