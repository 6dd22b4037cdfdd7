#pragma once

#include <cstdint>

namespace zerofleet {

/// A keyed permutation of [0, num_samples) for each epoch, computed point by point. No list of indices is held and no
/// cursor is saved, because the position of a sample follows from its number alone.
///
/// Method: a balanced Feistel network over the next even number of bits (Luby and Rackoff, 1988) with Philox as round
/// function. The network is walked until the value falls inside the range (Black and Rogaway, "Ciphers with arbitrary
/// finite domains", 2002). The domain is less than four times the range, so a walk takes fewer than four steps on
/// average.
class SamplePermutation {
 public:
  /// `number`: number of the dataset. Permutations of other numbers are independent.
  /// Throws Error{"invalid_argument"} if num_samples < 1.
  SamplePermutation(std::uint64_t seed, std::int64_t num_samples, std::uint32_t number = 0);

  /// Sample number in [0, num_samples) at `position` in [0, num_samples) of `epoch`.
  std::int64_t at(std::int64_t epoch, std::int64_t position) const;

  std::int64_t num_samples() const { return num_samples_; }

 private:
  std::uint64_t encrypt(std::uint64_t epoch, std::uint64_t value) const;

  std::uint64_t seed_;
  std::int64_t num_samples_;
  std::uint32_t first_round_;
  int half_bits_;
};

}  // namespace zerofleet
