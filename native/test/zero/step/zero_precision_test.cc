// Dtypes of sums and of the master, loss scaling and the pre-divide factor.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <mutex>
#include <vector>

#include "test/zero/fake_job.h"
#include "test/zero/full_state.h"
#include "zero/partition/shard_layout.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

/// An fp16 job with a dynamic loss scale that halves at once.
FakeJob scaled_job() {
  FakeJob job;
  job.options.param_dtype = job.options.reduce_dtype = DType::kF16;
  job.options.loss_scale.type = LossScaleType::kDynamic;
  job.options.loss_scale.initial_scale = 1 << 20;
  job.options.loss_scale.hysteresis = 1;
  job.options.loss_scale.window = 2;
  return job;
}

}  // namespace

TEST_CASE("sums of gradients in 16 bits: equal for every world size, of half the memory, and not those in fp32") {
  for (const DType sum_dtype : {DType::kBF16, DType::kF16}) {
    for (const std::int64_t num_lanes : {3, 8}) {
      FakeJob job;
      job.options.num_lanes = num_lanes;
      const auto wide = job.digests(1, 3);
      job.options.grad_accum_dtype = sum_dtype;
      const auto expected = job.digests(1, 3);
      CHECK(expected != wide);
      for (const int world_size : {2, 3}) CHECK(job.digests(world_size, 3) == expected);
      job.options.bucket_bytes = 16384;
      CHECK(job.digests(3, 3) == expected);
      job.on_ranks(1, [&](ZeroOptimizer& zero, Communicator&) {
        const std::size_t bytes = static_cast<std::size_t>(ShardLayout(job.specs, 1, 1).padded_numel()) * 2;
        CHECK(zero.memory().grad_shard == bytes);
        CHECK(zero.memory().lane_accumulator == (num_lanes == 3 ? bytes : 0));
      });
    }
  }
}

TEST_CASE("predivide: a power of two changes no bit of an fp32 exchange, and prevents overflow in fp16") {
  FakeJob job;
  job.options.reduce_dtype = DType::kF32;
  const auto expected = job.digests(2, 3);
  job.options.gradient_predivide_factor = 8;
  CHECK(job.digests(3, 3) == expected);
  job.options.gradient_predivide_factor = 3;
  const auto thirds = job.digests(1, 3);
  CHECK(thirds != expected);
  CHECK(job.digests(3, 3) == thirds);
  FakeJob large;
  large.options.reduce_dtype = DType::kF16;
  large.options.param_dtype = DType::kF16;
  large.change = [](std::int64_t, std::int64_t, std::size_t, std::vector<float>& grad) {
    for (float& value : grad) value *= 1e6F;
    return true;
  };
  for (const double factor : {1.0, 1024.0}) {
    large.options.gradient_predivide_factor = factor;
    large.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
      zero.initialize(5);
      CHECK(large.run_step(zero, 0).finite == (factor > 1));
    });
  }
}

TEST_CASE("a loss scale that is a power of two changes no bit where nothing overflows or vanishes") {
  FakeJob job;
  job.options.reduce_dtype = DType::kF32;
  const auto expected = job.digests(1, 3);
  job.options.loss_scale.type = LossScaleType::kStatic;
  job.options.loss_scale.initial_scale = 4096;
  CHECK(job.digests(2, 3) == expected);
}

TEST_CASE(
    "dynamic loss scale: steps that overflow fp16 are skipped on all ranks and the scale is halved until they fit") {
  const FakeJob job = scaled_job();
  const auto expected = job.digests(1, 8);
  for (const int world_size : {2, 3, 8}) CHECK(job.digests(world_size, 8) == expected);
  job.on_ranks(3, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    Digest128 before = zero.digest_part();
    double scale = 1 << 20;
    std::int64_t num_skipped = 0;
    bool grew = false;
    for (int step = 0; step < 8; ++step) {
      CHECK(zero.loss_scale() == scale);
      const StepSummary summary = job.run_step(zero, step);
      CHECK(summary.loss_scale == scale);
      CHECK((zero.digest_part() == before) == !summary.finite);
      before = zero.digest_part();
      num_skipped += summary.finite ? 0 : 1;
      CHECK(zero.skipped_steps() == num_skipped);
      CHECK(zero.optimizer_steps() == step + 1 - num_skipped);
      grew = grew || zero.loss_scale() > scale;
      if (!summary.finite) CHECK(zero.loss_scale() == scale / 2);
      if (summary.finite) CHECK(std::abs(summary.grad_norm - 11.8) < 0.2);  // unscaled
      scale = zero.loss_scale();
    }
    CHECK(num_skipped >= 2);
    CHECK(num_skipped <= 6);
    CHECK(grew);
  });
}

TEST_CASE("an overflow that the scale cannot cure is `diverged` on every rank, with the state as before") {
  FakeJob job = scaled_job();
  job.options.loss_scale.initial_scale = job.options.loss_scale.min_scale = 256;
  job.change = [](std::int64_t step, std::int64_t leaf, std::size_t param, std::vector<float>& grad) {
    if (step == 1 && leaf == 1 && param == 0) grad[7] = INFINITY;
    return true;
  };
  std::mutex mutex;
  int num_checked = 0;
  const auto failures = job.failures_on_ranks(3, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    CHECK(job.run_step(zero, 0).finite);
    const auto before = zero.digest_part();
    CHECK(code_of([&] { job.run_step(zero, 1); }) == "diverged");
    CHECK(zero.digest_part() == before);
    CHECK(zero.skipped_steps() == 1);
    CHECK(job.run_step(zero, 2).finite);  // training may continue
    const std::lock_guard lock(mutex);
    ++num_checked;
  });
  rethrow_first(failures);
  CHECK(num_checked == 3);
}

TEST_CASE("the loss scale can be overridden from outside and given back") {
  FakeJob job = scaled_job();
  job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(5);
    zero.override_loss_scale(64.0);
    const StepSummary summary = job.run_step(zero, 0);
    CHECK(summary.loss_scale == 64);
    CHECK(summary.finite);
    zero.override_loss_scale(std::nullopt);
    CHECK(zero.loss_scale() == (1 << 20));
  });
}

TEST_CASE("fp16 master: stored and saved values are fp16, parameters equal it, and no bit depends on the ranks") {
  FakeJob job;
  job.options.param_dtype = job.options.reduce_dtype = job.options.grad_accum_dtype = DType::kF16;
  CHECK(job.digests(1, 1) == job.digests(2, 1));
  job.options.master_dtype = DType::kF16;
  CHECK(code_of([&] { job.digests(1, 1); }) == "invalid_argument");
  job.options.offload = Offload::kCpu;
  job.options.param_groups = resolve_param_groups(job.specs, std::vector<ParamGroupRule>{{"square", 1, {}, true}}, 0.1);
  const auto expected = job.digests(1, 3);
  for (const int world_size : {2, 5}) CHECK(job.digests(world_size, 3) == expected);
  FullState state(job.specs);
  std::mutex mutex;
  Digest128 sum;
  job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator& comm) {
    zero.initialize(5);
    for (int step = 0; step < 3; ++step) job.run_step(zero, step);
    {
      const std::lock_guard lock(mutex);
      state.save(zero);
    }
    comm.barrier();
    for (std::size_t param = 0; param < job.specs.size(); ++param) {
      const auto* halves = reinterpret_cast<const f16*>(zero.params()[param]);
      const auto& master = state.array(StateId::kMaster, param);
      for (std::size_t i = 0; i < master.size(); ++i) REQUIRE(to_float(halves[i]) == master[i]);
    }
    // Loading a saved state restores it exactly.
    zero.initialize(6);
    state.load(zero);
    ZeroProgress progress = zero.progress();
    progress.optimizer_steps = 3;
    zero.finish_load(progress);
    const std::lock_guard lock(mutex);
    sum += zero.digest_part();
  });
  CHECK(sum.to_hex() == expected.back());
}
