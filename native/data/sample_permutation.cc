#include "data/sample_permutation.h"

#include <algorithm>
#include <bit>
#include <string>

#include "core/error.h"
#include "core/philox.h"

namespace zerofleet {
namespace {

constexpr std::uint32_t kNumRounds = 6;

}  // namespace

SamplePermutation::SamplePermutation(std::uint64_t seed, std::int64_t num_samples, std::uint32_t number)
    : seed_(seed), num_samples_(num_samples), first_round_(number * kNumRounds) {
  require(num_samples >= 1, "invalid_argument", "cannot permute " + std::to_string(num_samples) + " samples");
  const int bits = std::bit_width(static_cast<std::uint64_t>(num_samples - 1));
  half_bits_ = std::max(1, (bits + 1) / 2);
}

std::uint64_t SamplePermutation::encrypt(std::uint64_t epoch, std::uint64_t value) const {
  const std::uint64_t mask = (std::uint64_t{1} << half_bits_) - 1;
  std::uint64_t left = value >> half_bits_, right = value & mask;
  for (std::uint32_t round = first_round_; round < first_round_ + kNumRounds; ++round) {
    // A half has at most 32 bits, since sample numbers stay below 2^63.
    const auto mixed = philox(seed_, {static_cast<std::uint32_t>(right), round, static_cast<std::uint32_t>(epoch),
                                      static_cast<std::uint32_t>(epoch >> 32)});
    const std::uint64_t next = left ^ (mixed[0] & mask);
    left = right;
    right = next;
  }
  return (left << half_bits_) | right;
}

std::int64_t SamplePermutation::at(std::int64_t epoch, std::int64_t position) const {
  auto value = static_cast<std::uint64_t>(position);
  do {
    value = encrypt(static_cast<std::uint64_t>(epoch), value);
  } while (value >= static_cast<std::uint64_t>(num_samples_));
  return static_cast<std::int64_t>(value);
}

}  // namespace zerofleet
