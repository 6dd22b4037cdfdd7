// The promise of exactness for the features of a job beyond AdamW in bf16: the same bits on every number of ranks and
// threads, and after every interruption.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "test/train/tiny_job.h"
#include "test/zero/optimizer_types.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr int kFeatureSteps = 5;

/// fp16 with a dynamic scale that starts too high, so that the first steps are skipped.
struct Fp16Job : TinyJob {
  Fp16Job() : TinyJob(DType::kF16) {
    config.loss_scale.type = LossScaleType::kDynamic;
    config.loss_scale.initial_scale = std::exp2(32);
    config.loss_scale.hysteresis = 1;
    config.loss_scale.window = 3;
  }
};

struct Seen {
  std::vector<double> loss_scales, lrs;
  std::vector<bool> finite;
  std::vector<double> losses;
};

/// Runs the steps of a fresh run on one rank and returns their reports.
Seen run_and_see(TinyJob& job, int num_steps) {
  Seen seen;
  job.on_ranks(1, 2, [&](Trainer& trainer) {
    trainer.initialize();
    for (int step = 0; step < num_steps; ++step) {
      const StepResult result = trainer.step(0);
      seen.loss_scales.push_back(result.loss_scale);
      seen.lrs.push_back(result.lr);
      seen.finite.push_back(result.finite);
      seen.losses.push_back(result.loss);
    }
  });
  return seen;
}

void check_exact(TinyJob& job, const std::vector<int>& world_sizes) {
  const auto expected = job.digests_of_run(1, 1, kFeatureSteps);
  REQUIRE(expected.front() != expected.back());
  for (const int world_size : world_sizes) {
    CAPTURE(world_size);
    CHECK(job.digests_of_run(world_size, 2, kFeatureSteps) == expected);
  }
}

}  // namespace

TEST_CASE("fp16 with dynamic loss scaling: the same skips, scales and bits on every number of ranks") {
  Fp16Job job;
  const Seen seen = run_and_see(job, 34);
  const auto num_skipped = std::ranges::count(seen.finite, false);
  CHECK(num_skipped >= 8);
  CHECK(num_skipped < 25);
  CHECK(!seen.finite.front());
  CHECK(seen.loss_scales[1] == seen.loss_scales[0] / 2);
  CHECK(std::ranges::adjacent_find(seen.loss_scales, std::less()) != seen.loss_scales.end());  // it also rises again
  CHECK(seen.losses.back() < seen.losses.front() - 0.2);
  const auto digests = job.digests_of_run(1, 1, 20);
  CHECK(digests[0] == digests[1]);  // skipped
  CHECK(digests[19] != digests[16]);
  for (const int world_size : {2, 5}) CHECK(job.digests_of_run(world_size, 2, 20) == digests);
}

TEST_CASE("fp16 with lanes, 16-bit sums and predivide: the same bits on every number of ranks up to the lanes") {
  Fp16Job job;
  job.config.loss_scale.initial_scale = 256;
  job.config.zero.stage = 1;
  job.config.zero.lanes = 3;
  job.config.zero.grad_accum_dtype = DType::kF16;
  job.config.zero.gradient_predivide_factor = 4;
  check_exact(job, {2, 3});
}

TEST_CASE("every optimizer trains, with the same bits on every number of ranks") {
  for (const auto type : kOptimizerTypes) {
    CAPTURE(name_of(type));
    TinyJob job(DType::kBF16);
    job.config.optimizer.type = type;
    if (type == OptimizerType::kLion) job.config.lr_schedule.peak_lr = 1e-3;
    if (type == OptimizerType::kSgd) job.config.lr_schedule.peak_lr = 0.3;
    const Seen seen = run_and_see(job, 14);
    CHECK(seen.losses.back() < seen.losses.front() - 0.02);
    check_exact(job, {3});
  }
}

TEST_CASE(
    "parameter groups, a frozen part and clipping by the largest magnitude: the same bits, and the frozen part stays") {
  TinyJob job(DType::kBF16);
  job.config.param_groups = {{"model.embed_tokens.*", 1, {}, true}, {"*_proj.weight", 0.5, 0.0, false}};
  job.config.gradient_clipping = 0.01;
  job.config.gradient_clipping_norm = NormKind::kMax;
  check_exact(job, {2, 4});
  const SavedState before = job.run_from(nullptr, 1, 0), after = job.run_from(nullptr, 2, 3);
  const auto master = static_cast<std::size_t>(StateId::kMaster);
  CHECK(after.values[master].front() == before.values[master].front());  // the embedding
  for (std::size_t param = 1; param < after.values[master].size(); ++param) {
    CHECK(after.values[master][param] != before.values[master][param]);
  }
}

TEST_CASE("a job with all of it, paused in the middle of the scaler's hysteresis and of an override, goes on exactly") {
  Fp16Job job;
  job.config.loss_scale.initial_scale = std::exp2(30);
  job.config.loss_scale.hysteresis = 3;
  job.config.optimizer.type = OptimizerType::kLamb;
  job.config.overrides = {{2, OverrideChange::set(3e-3), {}},
                          {16, {}, OverrideChange::set(64)},
                          {20, OverrideChange::take_back(), OverrideChange::take_back()}};
  constexpr int kLong = 24;
  const auto expected = job.digests_of_run(1, 1, kLong);
  SavedState state = job.run_from(nullptr, 2, 1);
  CHECK(state.position.loss_scaler.hysteresis == 2);
  state = job.run_from(&state, 3, 1);
  CHECK(state.position.loss_scaler.hysteresis == 1);
  state = job.run_from(&state, 1, 16);
  state = job.run_from(&state, 2, kLong - 18);
  CHECK(state.digest == expected.back());
  CHECK(state.position.step == kLong);
  CHECK(state.position.skipped_steps > 3);
  CHECK(state.position.optimizer_steps + state.position.skipped_steps == kLong);
}

TEST_CASE("overrides are in force from their steps on") {
  Fp16Job job;
  job.config.loss_scale.initial_scale = 128;
  job.config.overrides = {{1, OverrideChange::set(0.5e-3), OverrideChange::set(32)},
                          {3, {}, OverrideChange::take_back()}};
  const Seen seen = run_and_see(job, 5);
  CHECK(seen.loss_scales == std::vector<double>{128, 32, 32, 128, 128});
  CHECK(seen.lrs[0] == job.config.lr_schedule.at(0));
  CHECK(seen.lrs[4] == 0.5e-3);
}

TEST_CASE("dropout drops other elements in each micro-batch and in each step") {
  const TemporaryFile same_sequences(bytes_of(cut_into_sequences(std::vector<std::uint32_t>(17 * 23 + 1, 7), 17)));
  const auto losses = [&](double dropout, std::int64_t global_batch_size) {
    TinyJob job(DType::kF32);
    job.config.training_files = {{same_sequences.path()}};
    job.config.batch = {global_batch_size, 1, 17};
    job.config.model.residual_dropout = dropout;
    job.config.lr_schedule = {LrScheduleType::kConstant, 0, 0, 0, 20};
    return run_and_see(job, 2).losses;
  };
  const auto without = losses(0, 1), one = losses(0.2, 1), two = losses(0.2, 2);
  CHECK(losses(0, 2) == without);
  CHECK(without[0] == without[1]);
  CHECK(two[0] != one[0]);  // the mean of the first micro-batch and another one
  CHECK(one[0] != one[1]);
}

TEST_CASE("memory by part: sharded parts shrink with the ranks, others stay") {
  TinyJob job(DType::kBF16);
  job.config.zero.stage = 1;
  job.config.zero.lanes = 4;
  const auto bytes = [&](int world_size) {
    std::vector<MemoryPart> parts;
    job.on_ranks(world_size, 1, [&](Trainer& trainer) {
      trainer.initialize();
      trainer.step(0);
      if (trainer.config().rank == 0) parts = trainer.memory();
    });
    return parts;
  };
  const auto one = bytes(1), four = bytes(4);
  const std::vector<std::string> names{"params",           "grad_shard", "master",      "moments",
                                       "lane_accumulator", "staging",    "activations", "packed_weights"};
  REQUIRE(one.size() == names.size() + 1);
  CHECK(one.back().name == std::string("shared_params"));
  CHECK(one.back().num_bytes + four.back().num_bytes == 0);  // no parameter is frozen
  std::vector<double> shares;
  for (std::size_t i = 0; i < names.size(); ++i) {
    CHECK(one[i].name == names[i]);
    CHECK(one[i].num_bytes > 0);
    shares.push_back(static_cast<double>(four[i].num_bytes) / static_cast<double>(one[i].num_bytes));
  }
  CHECK(shares[0] == 1);
  for (const std::size_t sharded : {1U, 2U, 3U}) CHECK(shares[sharded] == doctest::Approx(0.25).epsilon(0.35));
  CHECK(shares[4] == 1);
  CHECK(shares[6] == 1);
  CHECK(shares[7] == 1);
  CHECK(one[3].num_bytes == 2 * one[2].num_bytes);
}
