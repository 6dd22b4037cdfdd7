// The promise of the whole system, tested on the whole native core. The state after each step is the same bits for
// every world size, every number of threads and every interruption.
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "test/sanitized.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr int kExactSteps = 20;
constexpr int kWatchedSteps = kSanitized ? 5 : kExactSteps;  // a step's accesses are those of the step before

}  // namespace

TEST_CASE("digests are equal after each step for 1, 2, 3, 4 and 5 ranks with 1 or 2 threads") {
  for (const DType precision : {DType::kBF16, DType::kF32}) {
    TinyJob job(precision);
    const auto expected = job.digests_of_run(1, 1, kWatchedSteps);
    REQUIRE(expected.size() == kWatchedSteps);
    REQUIRE(expected.front() != expected.back());
    for (const int world_size : {1, 2, 3, 4, 5}) {
      for (const int num_threads : {1, 2}) {
        CAPTURE(world_size);
        CAPTURE(num_threads);
        CHECK(job.digests_of_run(world_size, num_threads, kWatchedSteps) == expected);
      }
    }
  }
}

// Attention's blocks of keys are many, and an MLP takes its rows in parts.
TEST_CASE("long sequences: digests are equal for 1, 2 and 3 ranks, with recomputed activations or without") {
  TinyJob job(DType::kBF16, best_cpu_isa(), kSanitized ? 4'200 : 16'384);
  job.config.model.num_hidden_layers = 1;
  job.config.model.hidden_size = 16;
  job.config.model.intermediate_size = 40;
  job.config.model.num_attention_heads = 2;
  job.config.model.num_key_value_heads = 1;
  job.config.model.head_dim = 8;
  job.config.batch.global_batch_size = 3;
  job.config.batch.micro_batch_size = 1;
  const auto expected = job.digests_of_run(1, 2, 2);
  job.config.activation_checkpointing = true;
  for (const int world_size : {1, 2, 3}) CHECK(job.digests_of_run(world_size, 1, 2) == expected);
}

TEST_CASE("every instruction-set path of this machine keeps the promise") {
  for (const CpuIsa isa : available_isas()) {
    CAPTURE(name_of(isa));
    TinyJob job(DType::kBF16, isa);
    CHECK(job.digests_of_run(3, 2, 6) == job.digests_of_run(1, 1, 6));
  }
}

TEST_CASE("a job that is saved and loaded on 2, 3 and 1 ranks ends like one that never stopped") {
  TinyJob job(DType::kBF16);
  const auto expected = job.digests_of_run(1, 2, kExactSteps).back();
  SavedState state = job.run_from(nullptr, 2, 7);
  state = job.run_from(&state, 3, 6);
  state = job.run_from(&state, 1, 7);
  CHECK(state.digest == expected);
}

TEST_CASE("stage 1: digests are equal after each step for every number of ranks up to the lanes") {
  TinyJob job(DType::kBF16);
  job.config.zero.stage = 1;
  job.config.zero.lanes = 3;
  const auto expected = job.digests_of_run(1, 1, 6);
  for (const int world_size : {1, 2, 3}) {
    CAPTURE(world_size);
    CHECK(job.digests_of_run(world_size, 2, 6) == expected);
  }
  job.config.zero.lanes = 7;  // as many as leaves: the same as stage 2
  const auto stage1 = job.digests_of_run(2, 1, 6);
  CHECK(stage1 != expected);
  job.config.zero.stage = 2;
  CHECK(job.digests_of_run(3, 1, 6) == stage1);
}

TEST_CASE("bucket size and exchange type are scheduling or numerics as documented") {
  TinyJob job(DType::kBF16);
  const auto expected = job.digests_of_run(2, 1, 5);
  job.config.zero.bucket_bytes = 16384;
  CHECK(job.digests_of_run(3, 1, 5) == expected);
  job.config.zero.reduce_dtype = DType::kF32;  // another numerical choice: other bits are right here
  CHECK(job.digests_of_run(2, 1, 5) != expected);
}

TEST_CASE("seeds change the run") {
  TinyJob job(DType::kBF16);
  const auto expected = job.digests_of_run(1, 1, 2);
  job.config.seed = 99;
  CHECK(job.digests_of_run(1, 1, 2) != expected);
  job.config.seed = 1;
  job.config.data_seed = 99;
  CHECK(job.digests_of_run(1, 1, 2) != expected);
}
