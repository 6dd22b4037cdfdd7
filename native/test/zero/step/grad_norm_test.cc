#include "zero/step/grad_norm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("norm: the root of all squares, or the largest magnitude") {
  CHECK(total_norm(NormKind::kL2, {.spread = 9, .same = 16}) == 5);
  CHECK(fold(NormKind::kL2, 9, block_value(NormKind::kL2, 16, 4)) == 25);
  CHECK(total_norm(NormKind::kMax, {.spread = 7, .same = 2}) == 7);
  CHECK(total_norm(NormKind::kMax, {.spread = 2, .same = 7}) == 7);
  CHECK(fold(NormKind::kMax, 3, block_value(NormKind::kMax, 16, 4)) == 4);
  CHECK(fold(NormKind::kMax, 5, block_value(NormKind::kMax, 16, 4)) == 5);
}

TEST_CASE("norm: a value that is not finite in one block shows in the total, regardless of later blocks") {
  for (const NormKind kind : {NormKind::kL2, NormKind::kMax}) {
    for (const double bad : {kInf, kNaN}) {
      CAPTURE(bad);
      const double sum = fold(kind, fold(kind, 1, block_value(kind, bad, 0)), block_value(kind, 4, 2));
      CHECK(!std::isfinite(total_norm(kind, {.spread = sum, .same = 1})));
      CHECK(!std::isfinite(total_norm(kind, {.spread = 1, .same = sum})));
      const std::vector<NormSums> ranks{{1, 1}, {1, sum}, {1, 1}};
      CHECK(!std::isfinite(over_model_parallel(kind, ranks).same));
    }
  }
}

TEST_CASE("norm: over model-parallel ranks, spread parameters are added and shared ones are counted once") {
  const std::vector<NormSums> sums{{1, 10}, {2, 10}, {4, 10}};
  const NormSums added = over_model_parallel(NormKind::kL2, sums), largest = over_model_parallel(NormKind::kMax, sums);
  CHECK(added.spread == 7);
  CHECK(added.same == 10);
  CHECK(largest.spread == 4);
  CHECK(largest.same == 10);
  // Rank order, whose bits differ from those of other orders.
  const std::vector<NormSums> large{{1e16, 0}, {1, 0}, {-1e16, 0}};
  CHECK(over_model_parallel(NormKind::kL2, large).spread == (1e16 + 1) - 1e16);
  CHECK(code_of([] { over_model_parallel(NormKind::kL2, {}); }) == "invalid_argument");
}
