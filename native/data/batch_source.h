#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/mixture_order.h"
#include "data/sequence_reader.h"

namespace zerofleet {

/// Sizes of a step in units: sequences, or pairs of sequences.
struct BatchShape {
  std::int64_t global_batch_size = 0;  // units per optimizer step
  std::int64_t micro_batch_size = 0;   // units per leaf; divides global_batch_size
  std::int64_t sequence_length = 0;    // T, targets per sequence

  template <class Fields>
  void fields(Fields& field) {
    field("global_batch_size", global_batch_size);
    field("micro_batch_size", micro_batch_size);
    field("sequence_length", sequence_length);
  }

  std::int64_t num_leaves() const { return global_batch_size / micro_batch_size; }
};

/// A token file to train on, and its share of the training.
struct TrainingFile {
  std::string path;
  std::int64_t weight = 1;  // relative to the weights of the other files

  template <class Fields>
  void fields(Fields& field) {
    field("path", path);
    field("weight", weight);
  }
};

/// Picks the units of each leaf of a training. The j-th unit of step s is the one at position s*global_batch_size + j
/// of a MixtureOrder. It depends on (seed, step, leaf) alone. Unit i is of the sequences i * unit_sequences on, which
/// are next to each other in a leaf.
/// Throws what SequenceReader throws, Error{"micro_batch_not_divisor"}.
class BatchSource {
 public:
  BatchSource(const std::vector<TrainingFile>& files, const BatchShape& shape, std::int64_t vocab_size,
              std::uint64_t seed, std::int64_t unit_sequences = 1);

  void load(std::int64_t step, std::int64_t leaf, LeafBatch& batch) const;
  /// Number of targets of all leaves of a step.
  std::int64_t num_targets(std::int64_t step) const;
  /// Number of units of all leaves of a step that have a target.
  std::int64_t num_units(std::int64_t step) const;

  const SequenceReader& sequences() const { return reader_; }
  const BatchShape& shape() const { return shape_; }

 private:
  /// The first sequence of the unit at a position of the series.
  std::int64_t sequence_at(std::int64_t position) const;
  std::int64_t targets_at(std::int64_t position) const;

  SequenceReader reader_;
  BatchShape shape_;
  std::int64_t unit_sequences_;
  MixtureOrder order_;
};

}  // namespace zerofleet
