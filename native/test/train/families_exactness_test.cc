// Exact elasticity for every family and its options: dropout, learned positions, biases, norms of queries and keys.
#include <doctest/doctest.h>

#include "test/model/family_configs.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("families: digests are equal for 1, 2 and 3 ranks, 1 and 2 threads, with and without checkpointing") {
  for (const auto& [name, model] : family_configs()) {
    CAPTURE(name);
    TinyJob job(DType::kBF16);
    job.config.model = model;
    const auto expected = job.digests_of_run(1, 1, 5);
    REQUIRE(expected.front() != expected.back());
    CHECK(job.digests_of_run(3, 1, 5) == expected);
    CHECK(job.digests_of_run(1, 2, 5) == expected);
    job.config.activation_checkpointing = true;
    CHECK(job.digests_of_run(2, 2, 5) == expected);
  }
}

TEST_CASE("families: a job that is saved and loaded on other ranks draws the dropout of one that never stopped") {
  TinyJob job(DType::kBF16);
  job.config.model = config_of("gpt2");
  const auto expected = job.digests_of_run(1, 2, 6).back();
  SavedState state = job.run_from(nullptr, 2, 2);
  state = job.run_from(&state, 3, 4);
  CHECK(state.digest == expected);
}
