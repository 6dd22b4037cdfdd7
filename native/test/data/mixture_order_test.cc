#include "data/mixture_order.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <map>
#include <numeric>
#include <vector>

#include "core/error.h"

using namespace zerofleet;

namespace {

using Parts = std::vector<MixturePart>;

/// The dataset of a unit, and the unit's number in the dataset.
struct Found {
  std::size_t dataset;
  std::int64_t unit;
};

Found found(const Parts& parts, std::int64_t unit) {
  std::size_t dataset = 0;
  while (unit >= parts[dataset].num_units) unit -= parts[dataset++].num_units;
  return {dataset, unit};
}

std::int64_t total_weight(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), std::int64_t{0},
                         [](std::int64_t sum, const MixturePart& part) { return sum + part.weight; });
}

const std::vector<Parts> kMixtures = {
    {{7, 1}},
    {{3, 1}, {5, 1}},
    {{10, 7}, {1000, 2}, {4, 1}},
    {{5, 5}, {9, 9}, {1, 1}, {20, 20}},  // by size
    {{2, 999}, {3, 1}},
    {{6, 1}, {6, 1}, {6, 1}, {6, 1}, {6, 1}, {6, 1}, {6, 1}},
    {{11, 13}, {17, 19}, {23, 29}, {2, 3}, {100, 200}},
};

}  // namespace

TEST_CASE("a single dataset is read by its permutation") {
  const MixtureOrder order(42, {{10, 3}});
  const SamplePermutation permutation(42, 10);
  for (std::int64_t position = 0; position < 35; ++position)
    CHECK(order.at(position) == permutation.at(position / 10, position % 10));
}

TEST_CASE("every W positions have exactly the weight of each dataset, and no prefix strays far from its shares") {
  for (const Parts& parts : kMixtures) {
    const MixtureOrder order(5, parts);
    const std::int64_t total = total_weight(parts);
    std::vector<std::int64_t> counts(parts.size());
    for (std::int64_t position = 0; position < 7 * total; ++position) {
      ++counts[found(parts, order.at(position)).dataset];
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const std::int64_t strays = std::abs(counts[i] * total - (position + 1) * parts[i].weight);
        REQUIRE(strays < static_cast<std::int64_t>(parts.size()) * total);
        if ((position + 1) % total == 0) REQUIRE(strays == 0);
      }
    }
  }
}

TEST_CASE("a dataset repeats no unit before all of its units were read, and then reads them in another order") {
  for (const Parts& parts : kMixtures) {
    const MixtureOrder order(5, parts);
    std::vector<std::vector<std::int64_t>> read(parts.size());
    for (std::int64_t position = 0; position < 9 * total_weight(parts); ++position) {
      const auto [dataset, unit] = found(parts, order.at(position));
      read[dataset].push_back(unit);
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t num_units = parts[i].num_units;
      std::vector<std::int64_t> times(static_cast<std::size_t>(num_units));
      for (std::size_t k = 0; k < read[i].size(); ++k) {
        REQUIRE(times[static_cast<std::size_t>(read[i][k])]++ == static_cast<std::int64_t>(k) / num_units);
      }
      const auto pass = [&](std::int64_t number) {
        const auto begin = read[i].begin() + number * num_units;
        return std::vector(begin, begin + num_units);
      };
      if (num_units >= 10 && static_cast<std::int64_t>(read[i].size()) >= 2 * num_units) CHECK(pass(0) != pass(1));
    }
  }
}

TEST_CASE("datasets of one size have independent orders") {
  const Parts parts = {{1000, 1}, {1000, 1}};
  const MixtureOrder order(5, parts);
  int equal = 0;
  for (std::int64_t position = 0; position < 2000; position += 2)
    equal += order.at(position + 1) - 1000 == order.at(position);
  CHECK(equal < 10);
}

TEST_CASE("positions and weights beyond 32 bits are exact") {
  const std::int64_t large = (std::int64_t{1} << 40) + 15;
  const MixtureOrder order(1, {{3, large}, {1, 2 * large}});
  std::map<bool, int> counts;
  for (std::int64_t position = 3 * large; position < 3 * large + 3000; ++position) ++counts[order.at(position) < 3];
  CHECK(counts[true] == 1000);
  CHECK(counts[false] == 2000);
}

TEST_CASE("the order is part of the contract: it never changes between versions") {
  // The values are those of the Python function in docs/data.md.
  const MixtureOrder order(42, {{10, 3}, {4, 2}});
  std::vector<std::int64_t> units;
  for (std::int64_t position = 0; position < 15; ++position) units.push_back(order.at(position));
  CHECK(units == std::vector<std::int64_t>{10, 8, 13, 9, 2, 12, 3, 11, 5, 6, 13, 4, 12, 7, 0});
}

TEST_CASE("a mixture without parts, with an empty part or a weight of 0 is refused") {
  CHECK_THROWS_AS(MixtureOrder(1, {}), Error);
  CHECK_THROWS_AS(MixtureOrder(1, {{5, 1}, {0, 1}}), Error);
  CHECK_THROWS_AS(MixtureOrder(1, {{5, 1}, {5, 0}}), Error);
}
