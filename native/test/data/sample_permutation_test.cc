#include "data/sample_permutation.h"

#include <doctest/doctest.h>

#include <vector>

#include "core/error.h"

using zerofleet::SamplePermutation;

TEST_CASE("every epoch visits every sample exactly once") {
  for (const std::int64_t num_samples : {1, 2, 3, 5, 64, 65, 1000, 4097}) {
    const SamplePermutation permutation(7, num_samples);
    for (const std::int64_t epoch : {0, 1, 12345}) {
      std::vector<bool> seen(static_cast<std::size_t>(num_samples), false);
      for (std::int64_t position = 0; position < num_samples; ++position) {
        const std::int64_t sample = permutation.at(epoch, position);
        REQUIRE(sample >= 0);
        REQUIRE(sample < num_samples);
        REQUIRE_FALSE(seen[static_cast<std::size_t>(sample)]);
        seen[static_cast<std::size_t>(sample)] = true;
      }
    }
  }
}

TEST_CASE("order changes with seed and epoch and has no visible trend") {
  const SamplePermutation one(1, 1000), two(2, 1000);
  int equal_seeds = 0, equal_epochs = 0, ascending = 0;
  for (std::int64_t position = 0; position < 999; ++position) {
    equal_seeds += one.at(0, position) == two.at(0, position);
    equal_epochs += one.at(0, position) == one.at(1, position);
    ascending += one.at(0, position) < one.at(0, position + 1);
  }
  CHECK(equal_seeds < 10);
  CHECK(equal_epochs < 10);
  CHECK(ascending > 440);
  CHECK(ascending < 560);
}

TEST_CASE("the order is part of the contract: it never changes between versions") {
  const SamplePermutation permutation(42, 10);
  std::vector<std::int64_t> order;
  for (std::int64_t position = 0; position < 10; ++position) order.push_back(permutation.at(3, position));
  CHECK(order == std::vector<std::int64_t>{3, 1, 0, 6, 7, 4, 8, 2, 9, 5});
}

TEST_CASE("an empty range is refused") { CHECK_THROWS_AS(SamplePermutation(1, 0), zerofleet::Error); }
