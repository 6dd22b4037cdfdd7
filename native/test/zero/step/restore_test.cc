// Parts of a saved state that are restored.
#include <doctest/doctest.h>

#include <mutex>
#include <vector>

#include "test/zero/fake_job.h"
#include "test/zero/full_state.h"
#include "zero/partition/digest.h"
#include "zero/partition/param_init.h"
#include "zero/partition/shard_layout.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Saved {
  FullState state;
  ZeroProgress progress;
};

Saved run_and_save(const FakeJob& job, int world_size, int num_steps) {
  Saved saved{FullState(job.specs), {}};
  std::mutex mutex;
  job.on_ranks(world_size, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    for (int step = 0; step < num_steps; ++step) job.run_step(zero, step);
    const std::lock_guard lock(mutex);
    saved.state.save(zero);
    saved.progress = zero.progress();
  });
  return saved;
}

/// Returns the digest after loading and, if requested, more steps; saves the resulting state.
std::string load_and_run(const FakeJob& job, int world_size, Saved& saved, Restore restore, Range steps,
                         Saved* after = nullptr) {
  Digest128 sum;
  std::mutex mutex;
  job.on_ranks(world_size, [&](ZeroOptimizer& zero, Communicator&) {
    {
      const std::lock_guard lock(mutex);
      saved.state.load(zero);
    }
    zero.finish_load(saved.progress, restore);
    for (std::int64_t step = steps.begin; step < steps.end; ++step) job.run_step(zero, step);
    const std::lock_guard lock(mutex);
    sum += zero.digest_part();
    if (after == nullptr) return;
    after->state.save(zero);
    after->progress = zero.progress();
  });
  return sum.to_hex();
}

}  // namespace

TEST_CASE("restore full: goes on with the same bits, the loss scaler included") {
  FakeJob job;
  job.options.param_dtype = job.options.reduce_dtype = DType::kF16;
  job.options.loss_scale.type = LossScaleType::kDynamic;
  job.options.loss_scale.initial_scale = 1 << 20;
  job.options.loss_scale.window = 2;
  const auto expected = job.digests(1, 9).back();
  for (const int num_steps : {1, 4, 6}) {
    Saved saved = run_and_save(job, 3, num_steps);
    CHECK(saved.progress.skipped_steps > 0);
    CHECK(load_and_run(job, 2, saved, Restore::kFull, {num_steps, 9}) == expected);
    const ZeroProgress progress = saved.progress;
    saved.progress.loss_scaler.scale *= 2;
    CHECK(load_and_run(job, 2, saved, Restore::kFull, {num_steps, 9}) != expected);
    saved.progress = progress;
  }
}

TEST_CASE("restore weights: the master as it was, everything else as at the beginning") {
  FakeJob job;
  Saved saved = run_and_save(job, 2, 3), after{FullState(job.specs), {}};
  load_and_run(job, 3, saved, Restore::kWeights, {0, 0}, &after);
  CHECK(after.progress.optimizer_steps == 0);
  CHECK(after.progress.loss_scaler == LossScaler(job.options.loss_scale).state());
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    CHECK(after.state.array(StateId::kMaster, param) == saved.state.array(StateId::kMaster, param));
    CHECK(std::ranges::all_of(after.state.array(StateId::kExpAvg, param), [](float value) { return value == 0; }));
    CHECK(std::ranges::all_of(after.state.array(StateId::kExpAvgSq, param), [](float value) { return value == 0; }));
  }
  // Without moments in the checkpoint it is the same.
  const auto expected = load_and_run(job, 2, saved, Restore::kWeights, {0, 2});
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    saved.state.array(StateId::kExpAvg, param)[0] = NAN;  // not loaded
    saved.state.array(StateId::kExpAvgSq, param)[0] = NAN;
  }
  CHECK(load_and_run(job, 1, saved, Restore::kWeights, {0, 2}) == expected);
  CHECK(load_and_run(job, 1, saved, Restore::kFull, {0, 2}) != expected);  // its counter of steps
}

TEST_CASE("restore 16-bit weights: the master equals the parameters, rounded and widened; all else is kept") {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    FakeJob job;
    job.options.param_dtype = dtype;
    Saved saved = run_and_save(job, 2, 3), after{FullState(job.specs), {}};
    load_and_run(job, 3, saved, Restore::kWeights16Bit, {0, 0}, &after);
    for (std::size_t param = 0; param < job.specs.size(); ++param) {
      std::vector<float> expected = saved.state.array(StateId::kMaster, param);
      for (float& value : expected) {
        if (dtype == DType::kBF16) value = to_float(to_bf16(value));
        if (dtype == DType::kF16) value = to_float(to_f16(value));
      }
      CHECK(after.state.array(StateId::kMaster, param) == expected);
      CHECK(after.state.array(StateId::kExpAvg, param) == saved.state.array(StateId::kExpAvg, param));
      CHECK(after.state.array(StateId::kExpAvgSq, param) == saved.state.array(StateId::kExpAvgSq, param));
    }
    CHECK(after.progress.optimizer_steps == saved.progress.optimizer_steps);
  }
}

TEST_CASE("restore 16-bit weights and digests: all elements of a piece that is treated in parts") {
  FakeJob job;
  job.specs = {{"large", {1000, 700}}};
  job.options.bucket_bytes = 1 << 24;  // so that each rank has one long piece
  ThreadPool pool(1);
  const Context context{Device{}, &pool, best_cpu_isa()};
  for (const DType dtype : {DType::kBF16, DType::kF16}) {
    job.options.param_dtype = job.options.reduce_dtype = dtype;
    if (dtype == DType::kF16) {
      job.options.master_dtype = DType::kF16;
      job.options.offload = Offload::kCpu;
    }
    FullState state(job.specs);
    Digest128 digest, expected_digest;
    std::mutex mutex;
    job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
      zero.initialize(5);
      zero.finish_load(zero.progress(), Restore::kWeights16Bit);
      const std::lock_guard lock(mutex);
      state.save(zero);
      digest += zero.digest_part();
    });
    std::vector<float> expected(static_cast<std::size_t>(job.specs[0].numel()));
    init_param(job.specs[0], 5, 0, 0, expected);
    for (float& value : expected) value = dtype == DType::kBF16 ? to_float(to_bf16(value)) : to_float(to_f16(value));
    CHECK(state.array(StateId::kMaster, 0) == expected);
    for (const StateId id : {StateId::kMaster, StateId::kExpAvg, StateId::kExpAvgSq}) {
      std::vector<float> padded = state.array(id, 0);
      padded.resize(static_cast<std::size_t>(num_blocks_of(job.specs[0].numel()) * kBlockNumel));
      expected_digest += digest_blocks(context, static_cast<std::uint8_t>(id), 0, padded);
    }
    CHECK(digest.to_hex() == expected_digest.to_hex());
  }
}

TEST_CASE("refresh master: the parameters' values replace the master's, on any number of ranks") {
  FakeJob job;
  Saved saved = run_and_save(job, 1, 1), after{FullState(job.specs), {}};
  std::mutex mutex;
  job.on_ranks(3, [&](ZeroOptimizer& zero, Communicator&) {
    {
      const std::lock_guard lock(mutex);
      saved.state.load(zero);
    }
    zero.finish_load(saved.progress);
    for (const StateRange& range : zero.state_ranges()) {  // lost
      if (range.state != StateId::kMaster) continue;
      const std::vector<float> lost(static_cast<std::size_t>(range.elements.size()), 7.0F);
      zero.load_state(range.state, range.param, range.elements.begin, lost);
    }
    zero.refresh_master();
    const std::lock_guard lock(mutex);
    after.state.save(zero);
  });
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    std::vector<float> expected = saved.state.array(StateId::kMaster, param);
    for (float& value : expected) value = to_float(to_bf16(value));
    CHECK(after.state.array(StateId::kMaster, param) == expected);
    CHECK(after.state.array(StateId::kExpAvg, param) == saved.state.array(StateId::kExpAvg, param));
  }
}

TEST_CASE("a load outside of a rank's shard, and invalid progress, are refused") {
  FakeJob job;
  job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    const auto ranges = zero.state_ranges();
    const StateRange& range = ranges.front();
    std::vector<float> values(static_cast<std::size_t>(range.elements.size()) + 1);
    CHECK(code_of([&] { zero.load_state(range.state, range.param, range.elements.begin, values); }) ==
          "slice_not_owned");
    CHECK(code_of([&] { zero.copy_state(range.state, range.param, range.elements.begin, values); }) ==
          "slice_not_owned");
    CHECK(code_of([&] { zero.copy_state(StateId::kSum, range.param, range.elements.begin, {}); }) == "slice_not_owned");
    CHECK(code_of([&] { zero.copy_state(StateId::kMaster, 99, 0, {}); }) == "invalid_argument");
    ZeroProgress progress = zero.progress();
    progress.skipped_steps = -1;
    CHECK(code_of([&] { zero.finish_load(progress); }) == "invalid_argument");
  });
}
