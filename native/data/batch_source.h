#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/sample_permutation.h"
#include "data/token_file.h"

namespace zerofleet {

struct BatchShape {
  std::int64_t global_batch_size = 0;  // sequences per optimizer step
  std::int64_t micro_batch_size = 0;   // B, sequences per leaf; divides global_batch_size
  std::int64_t sequence_length = 0;    // T, targets per sequence

  std::int64_t num_leaves() const { return global_batch_size / micro_batch_size; }
};

/// One leaf's input: tokens and next-token targets, both (B, T) row-major.
struct LeafBatch {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> targets;
};

/// Picks the sequences of each leaf. Sequence i is tokens[i*T .. i*T+T]: T inputs and, shifted by one, T targets. The j-th
/// sequence of step s is the one at place s*global_batch_size + j of an endless series of epochs, each a keyed permutation.
/// It depends on (seed, step, leaf) alone.
/// Throws Error{"sequence_longer_than_data"}, Error{"micro_batch_not_divisor"}, Error{"token_out_of_vocab"}.
class BatchSource {
 public:
  BatchSource(const std::string& token_path, const BatchShape& shape, std::int64_t vocab_size, std::uint64_t seed);

  void load(std::int64_t step, std::int64_t leaf, LeafBatch& batch) const;

  std::int64_t num_sequences() const { return permutation_.num_samples(); }
  const BatchShape& shape() const { return shape_; }

 private:
  TokenFile file_;
  BatchShape shape_;
  std::int64_t vocab_size_;
  SamplePermutation permutation_;
};

}  // namespace zerofleet
