#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "test/zero/fake_job.h"
#include "zero/norm_groups.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("norm groups: the L2 total is the root of all sums") {
  const NormGroups groups(NormKind::kL2, {{"a"}, {"b"}});
  const std::vector<double> sums{9, 16};
  CHECK(groups.total(sums) == 5);
  CHECK(groups.norm(sums[1]) == 4);
  CHECK(groups.fold(9, groups.block_value(16, 4)) == 25);
}

TEST_CASE("norm groups: the max total is the largest of all groups, experts too") {
  const NormGroups groups(NormKind::kMax, {{"a"}, {"set 0", 0}, {"set 1", 1}}, 2);
  const std::vector<double> sums{2, 7, 3};
  CHECK(groups.total(sums) == 7);
  CHECK(groups.norm(sums[2]) == 3);
  CHECK(groups.fold(3, groups.block_value(16, 4)) == 4);
  CHECK(groups.fold(5, groups.block_value(16, 4)) == 5);
}

TEST_CASE("norm groups: the norm of the experts is the mean of the norms of their sets") {
  // Set 0: sqrt(9 + 16) = 5; set 1: sqrt(49) = 7; their mean 6. Shared: 64. Total: sqrt(64 + 36).
  const NormGroups groups(NormKind::kL2, {{"w0", 0}, {"shared"}, {"w1", 1}, {"b0", 0}}, 2);
  CHECK(groups.total(std::vector<double>{9, 64, 49, 16}) == 10);
  // Of three sets one has nothing to train: (12 + 24 + 0) / 3 = 12.
  const NormGroups with_frozen(NormKind::kL2, {{"shared"}, {"set 0", 0}, {"set 2", 2}}, 3);
  CHECK(with_frozen.total(std::vector<double>{25, 144, 576}) == 13);
}

TEST_CASE("norm groups: what is not finite in one block shows in the total, whatever comes after it") {
  for (const NormKind kind : {NormKind::kL2, NormKind::kMax}) {
    const NormGroups groups(kind, {{"shared"}, {"set 0", 0}, {"set 1", 1}}, 2);
    for (const double bad : {kInf, kNaN}) {
      for (std::size_t where = 0; where < 3; ++where) {
        std::vector<double> sums{1, 1, 1};
        sums[where] = groups.fold(sums[where], groups.block_value(bad, 0));
        sums[where] = groups.fold(sums[where], groups.block_value(4, 2));
        CAPTURE(bad);
        CAPTURE(where);
        CHECK(!std::isfinite(groups.total(sums)));
        CHECK(!std::isfinite(groups.norm(sums[where])));
      }
    }
  }
}

TEST_CASE("norm groups: over model-parallel ranks, what is spread is added and what is the same is counted once") {
  const std::vector<NormGroup> groups{{"spread", -1, true}, {"same"}};
  const std::vector<double> sums_of_ranks{1, 10, 2, 10, 4, 10};
  CHECK(NormGroups(NormKind::kL2, groups).over_model_parallel(sums_of_ranks) == std::vector<double>{7, 10});
  CHECK(NormGroups(NormKind::kMax, groups).over_model_parallel(sums_of_ranks) == std::vector<double>{4, 10});
  // Rank order, whose bits differ from those of other orders.
  const std::vector<double> large{1e16, 0, 1, 0, -1e16, 0};
  CHECK(NormGroups(NormKind::kL2, groups).over_model_parallel(large)[0] == (1e16 + 1) - 1e16);
}

TEST_CASE("norm groups that cannot be are refused") {
  CHECK(code_of([] { NormGroups(NormKind::kL2, {}); }) == "invalid_argument");
  CHECK(code_of([] { NormGroups(NormKind::kL2, {{"a"}, {"set 1", 1}}, 1); }) == "invalid_argument");
  const NormGroups groups(NormKind::kL2, {{"a"}, {"b"}});
  CHECK(code_of([&] { groups.total(std::vector<double>{1}); }) == "invalid_argument");
  CHECK(code_of([&] { groups.over_model_parallel(std::vector<double>{1, 2, 3}); }) == "invalid_argument");
}
