#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <vector>

#include "test/zero/fake_job.h"
#include "test/zero/full_state.h"
#include "zero/partition/shard_layout.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

void load(ZeroOptimizer& zero, FullState& state, std::int64_t steps) {
  state.load(zero);
  ZeroProgress progress = zero.progress();
  progress.optimizer_steps = steps;
  zero.finish_load(progress);
}

}  // namespace

TEST_CASE("digests after each step are equal for every world size, thread count and instruction-set path") {
  for (const DType reduce_dtype : {DType::kBF16, DType::kF32}) {
    FakeJob job;
    job.options.reduce_dtype = reduce_dtype;
    const auto expected = job.digests(1, 4);
    CHECK(expected[0] != expected[3]);
    for (const int world_size : {2, 3, 4, 5, 8}) {
      CAPTURE(world_size);
      CHECK(job.digests(world_size, 4) == expected);
    }
    job.num_threads = 3;
    CHECK(job.digests(2, 4) == expected);
    // None of these kernels uses fused operations, so their paths agree, which the models' matrix products don't.
    for (const CpuIsa isa : available_isas()) {
      job.isa = isa;
      CHECK(job.digests(3, 4) == expected);
    }
  }
}

TEST_CASE("the bits of AdamW jobs are those of earlier versions") {
  // A change here is a new version of the numerics fingerprint.
  FakeJob job;
  CHECK(job.digests(2, 4).back() == "06c1daf4447443f8f04ae79a4f6485cb");
  job.options.reduce_dtype = DType::kF32;
  CHECK(job.digests(2, 4).back() == "751ebcf0c70ebfbff208e0b0b507d746");
}

TEST_CASE("bucket size and the order in which gradients arrive don't change a bit") {
  FakeJob job;
  const auto expected = job.digests(1, 3);
  for (const std::int64_t bucket_bytes : {16384, 100000, 1 << 22}) {
    CAPTURE(bucket_bytes);
    job.options.bucket_bytes = bucket_bytes;
    CHECK(job.digests(1, 3) == expected);
    CHECK(job.digests(3, 3) == expected);
    job.reversed_arrival = !job.reversed_arrival;
    CHECK(job.digests(3, 3) == expected);
  }
}

TEST_CASE("settings that should change the result do") {
  FakeJob job;
  const auto expected = job.digests(2, 2);
  job.options.reduce_dtype = DType::kF32;
  CHECK(job.digests(2, 2) != expected);
  job = FakeJob();
  job.options.optimizer.weight_decay = 0;
  CHECK(job.digests(2, 2) != expected);
  job = FakeJob();
  job.options.gradient_clipping = 1e-3F;
  CHECK(job.digests(2, 2) != expected);
}

TEST_CASE("state saved by 2 ranks and loaded by 3 and then 1 goes on with the same bits") {
  FakeJob job;
  const auto expected = job.digests(1, 6).back();
  FullState state(job.specs);
  std::mutex mutex;
  Digest128 sum;
  int step_begin = 0;
  for (const int world_size : {2, 3, 1}) {
    FullState next(job.specs);
    sum = {};
    job.on_ranks(world_size, [&](ZeroOptimizer& zero, Communicator&) {
      if (step_begin == 0) {
        zero.initialize(5);
      } else {
        load(zero, state, step_begin);
      }
      for (int step = step_begin; step < step_begin + 2; ++step) job.run_step(zero, step);
      CHECK(zero.optimizer_steps() == step_begin + 2);
      const std::lock_guard lock(mutex);
      next.save(zero);
      sum += zero.digest_part();
    });
    state = next;
    step_begin += 2;
  }
  CHECK(sum.to_hex() == expected);
}

TEST_CASE("parameters on every rank are the rounded master, padding left out") {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    FakeJob job;
    job.options.param_dtype = dtype;
    FullState state(job.specs);
    std::mutex mutex;
    std::vector<std::vector<std::byte>> params_of_ranks;
    job.on_ranks(3, [&](ZeroOptimizer& zero, Communicator&) {
      zero.initialize(5);
      for (int step = 0; step < 2; ++step) job.run_step(zero, step);
      std::vector<std::byte> params;
      for (std::size_t param = 0; param < job.specs.size(); ++param) {
        CHECK(reinterpret_cast<std::uintptr_t>(zero.params()[param]) % 64 == 0);
        const auto num_bytes = static_cast<std::size_t>(job.specs[param].numel()) * size_of(dtype);
        params.insert(params.end(), zero.params()[param], zero.params()[param] + num_bytes);
      }
      const std::lock_guard lock(mutex);
      state.save(zero);
      params_of_ranks.push_back(params);
    });
    std::vector<std::byte> expected;
    for (const auto& values : state.values[0]) {
      for (const float value : values) {
        std::byte bytes[4];
        const bf16 narrow = to_bf16(value);
        std::memcpy(bytes, dtype == DType::kBF16 ? static_cast<const void*>(&narrow) : &value, size_of(dtype));
        expected.insert(expected.end(), bytes, bytes + size_of(dtype));
      }
    }
    for (const auto& params : params_of_ranks) CHECK(params == expected);
  }
}

TEST_CASE("loss, norm, targets and flags are those of all ranks together") {
  FakeJob job;
  job.options.reduce_dtype = DType::kF32;
  job.options.num_leaves = 5;
  double loss_sum = 0, sum_squares = 0;
  for (int leaf = 0; leaf < 5; ++leaf) loss_sum += job.loss_sum(0, leaf);
  for (std::size_t param = 0; param < job.specs.size(); ++param) {
    for (std::int64_t e = 0; e < job.specs[param].numel(); ++e) {
      double grad = 0;
      for (int leaf = 0; leaf < 5; ++leaf) grad += static_cast<double>(job.grad(0, leaf, param, e));
      sum_squares += grad * grad;
    }
  }
  job.on_ranks(3, [&](ZeroOptimizer& zero, Communicator& comm) {
    zero.initialize(1);
    const StepSummary summary = job.run_step(zero, 0, 1U << comm.rank());
    CHECK(summary.finite);
    CHECK(summary.num_targets == 300);
    CHECK(summary.flags == 7);
    CHECK(summary.loss == doctest::Approx(loss_sum / 300).epsilon(1e-14));
    CHECK(summary.grad_norm == doctest::Approx(std::sqrt(sum_squares) * 64 / 300).epsilon(1e-6));
    CHECK(job.run_step(zero, 1).flags == 0);
  });
}

TEST_CASE("a gradient that is not finite on one rank makes all ranks skip the update") {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    FakeJob job;
    job.options.num_leaves = 2;
    std::mutex mutex;
    Digest128 before, after;
    job.on_ranks(2, [&](ZeroOptimizer& zero, Communicator& comm) {
      zero.initialize(1);
      job.run_step(zero, 0);
      const Digest128 part_before = zero.digest_part();
      zero.begin_leaf(comm.rank());
      for (std::size_t param = 0; param < job.specs.size(); ++param) {
        std::vector<float> values(static_cast<std::size_t>(job.specs[param].numel()), 0.25F);
        if (comm.rank() == 1 && param == 3) values[77] = bad;
        zero.add_grad(param, values);
      }
      zero.end_leaf(1.0, 10);
      const StepSummary summary = zero.step({1e-2, 0});
      CHECK(!summary.finite);
      CHECK(zero.optimizer_steps() == 1);
      CHECK(zero.skipped_steps() == 1);
      const Digest128 part_after = zero.digest_part();
      CHECK(job.run_step(zero, 2).finite);
      const std::lock_guard lock(mutex);
      before += part_before;
      after += part_after;
    });
    CHECK(before == after);
  }
}

TEST_CASE("memory: a rank keeps its share of state and gradients, and two buckets on their way") {
  FakeJob job;
  job.options.bucket_bytes = 65536;
  std::mutex mutex;
  ZeroMemory sum;
  job.on_ranks(4, [&](ZeroOptimizer& zero, Communicator&) {
    zero.initialize(1);
    job.run_step(zero, 0);
    const ZeroMemory memory = zero.memory();
    CHECK(memory.send_staging + memory.receive_staging <= 3 * 65536);
    const std::lock_guard lock(mutex);
    sum.params = memory.params;
    sum.grad_shard += memory.grad_shard;
    sum.master += memory.master;
    sum.moments += memory.moments;
  });
  const ShardLayout layout(job.specs, 1, 1);
  CHECK(sum.params == static_cast<std::size_t>(layout.padded_numel()) * 2);
  CHECK(sum.grad_shard == static_cast<std::size_t>(layout.padded_numel()) * 4);
  CHECK(sum.master == static_cast<std::size_t>(layout.padded_numel()) * 4);
  CHECK(sum.moments == static_cast<std::size_t>(layout.padded_numel()) * 8);
}

TEST_CASE("memory by part, exactly: stage, dtypes, frozen parameters and the number of ranks") {
  FakeJob job;
  job.options.num_lanes = 4;
  job.options.bucket_bytes = 65536;
  job.options.param_dtype = job.options.reduce_dtype = job.options.grad_accum_dtype = DType::kF16;
  job.options.param_groups = resolve_param_groups(job.specs, std::vector<ParamGroupRule>{{"big", 1, {}, true}}, 0.1);
  const auto all = static_cast<std::size_t>(ShardLayout(job.specs, 1, 1).num_blocks());
  const auto frozen = static_cast<std::size_t>(num_blocks_of(job.specs[3].numel())), trained = all - frozen;
  constexpr auto kBlock = static_cast<std::size_t>(kBlockNumel);
  for (const int world_size : {1, 2, 4}) {
    std::mutex mutex;
    ZeroMemory sum;
    job.on_ranks(world_size, [&](ZeroOptimizer& zero, Communicator&) {
      zero.initialize(1);
      job.run_step(zero, 0);
      const ZeroMemory memory = zero.memory();
      CHECK(memory.params == all * kBlock * 2);
      CHECK(memory.lane_accumulator == trained * kBlock * 2);
      // Two buckets, and one widened to fp32 when it leaves the lane accumulator.
      CHECK(memory.send_staging <= 2 * 65536 + 2 * 65536);
      CHECK(memory.receive_staging <= (world_size == 1 ? 0U : 65536U + 4 * kBlock * 2));
      const std::lock_guard lock(mutex);
      sum.grad_shard += memory.grad_shard;
      sum.master += memory.master;
      sum.moments += memory.moments;
    });
    CHECK(sum.grad_shard == trained * kBlock * 2);
    CHECK(sum.master == trained * kBlock * 4);
    CHECK(sum.moments == trained * kBlock * 8);
  }
}
