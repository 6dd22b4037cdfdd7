#include "data/batch_source.h"

#include <cstddef>

#include "core/error.h"

namespace zerofleet {
namespace {

std::vector<std::string> paths_of(const std::vector<TrainingFile>& files) {
  std::vector<std::string> paths;
  for (const TrainingFile& file : files) paths.push_back(file.path);
  return paths;
}

std::vector<MixturePart> parts_of(const std::vector<TrainingFile>& files, const SequenceReader& reader,
                                  std::int64_t unit_sequences) {
  std::vector<MixturePart> parts;
  for (std::size_t i = 0; i < files.size(); ++i) {
    parts.push_back({reader.sequences_of(i) / unit_sequences, files[i].weight});
  }
  return parts;
}

}  // namespace

BatchSource::BatchSource(const std::vector<TrainingFile>& files, const BatchShape& shape, std::int64_t vocab_size,
                         std::uint64_t seed, std::int64_t unit_sequences)
    : reader_(paths_of(files), shape.sequence_length, vocab_size, unit_sequences),
      shape_(shape),
      unit_sequences_(unit_sequences),
      order_(seed, parts_of(files, reader_, unit_sequences)) {
  require(shape.micro_batch_size >= 1 && shape.global_batch_size >= 1 &&
              shape.global_batch_size % shape.micro_batch_size == 0,
          "micro_batch_not_divisor",
          "micro_batch_size " + std::to_string(shape.micro_batch_size) + " does not divide global_batch_size " +
              std::to_string(shape.global_batch_size));
}

void BatchSource::load(std::int64_t step, std::int64_t leaf, LeafBatch& batch) const {
  const std::int64_t rows = shape_.micro_batch_size * unit_sequences_;
  const std::int64_t first_position = step * shape_.global_batch_size + leaf * shape_.micro_batch_size;
  reader_.resize(batch, rows);
  for (std::int64_t row = 0; row < rows; ++row) {
    reader_.read(sequence_at(first_position + row / unit_sequences_) + row % unit_sequences_, row, batch);
  }
}

std::int64_t BatchSource::num_targets(std::int64_t step) const {
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < shape_.global_batch_size; ++j) count += targets_at(step * shape_.global_batch_size + j);
  return count;
}

std::int64_t BatchSource::num_units(std::int64_t step) const {
  std::int64_t count = 0;
  for (std::int64_t j = 0; j < shape_.global_batch_size; ++j) {
    count += targets_at(step * shape_.global_batch_size + j) > 0 ? 1 : 0;
  }
  return count;
}

std::int64_t BatchSource::targets_at(std::int64_t position) const {
  const std::int64_t first = sequence_at(position);
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < unit_sequences_; ++i) count += reader_.num_targets(first + i);
  return count;
}

std::int64_t BatchSource::sequence_at(std::int64_t position) const { return order_.at(position) * unit_sequences_; }

}  // namespace zerofleet
