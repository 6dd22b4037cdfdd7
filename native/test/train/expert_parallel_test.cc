// Training with experts spread over ranks: the bits depend on the number of sets, and on nothing else that may change.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "comm/thread_comm.h"
#include "core/error.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/train/expert_job.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

constexpr int kExpertSteps = 4;

std::size_t part_of(Trainer& trainer, const std::string& name) {
  for (const MemoryPart& part : trainer.memory()) {
    if (part.name == name) return part.num_bytes;
  }
  return 0;
}

}  // namespace

TEST_CASE(
    "experts spread over ranks: digests are equal on 2, 4 and 6 ranks, 1 and 2 threads, with checkpointing, in both "
    "stages") {
  for (const DType precision : {DType::kBF16, DType::kF32}) {
    ExpertJob job(precision);
    const auto expected = job.digests_of_run(2, 1, kExpertSteps);
    REQUIRE(expected.front() != expected.back());
    CHECK(job.digests_of_run(4, 2, kExpertSteps) == expected);
    CHECK(job.digests_of_run(6, 1, kExpertSteps) == expected);
    job.config.activation_checkpointing = true;
    CHECK(job.digests_of_run(4, 1, kExpertSteps) == expected);
  }
  ExpertJob job(DType::kBF16);
  job.config.zero.stage = 1;
  job.config.zero.lanes = 4;
  job.config.zero.bucket_bytes = 16384;
  CHECK(job.digests_of_run(4, 1, kExpertSteps) == job.digests_of_run(2, 2, kExpertSteps));
}

TEST_CASE("experts spread over four ranks, one of them frozen: the same digests on 4 and 8 ranks") {
  ExpertJob job(DType::kBF16, 4);
  job.config.batch.global_batch_size = 16;
  job.config.param_groups = {{"*.experts.1.*", 1, {}, true}};
  CHECK(job.digests_of_run(8, 1, kExpertSteps) == job.digests_of_run(4, 2, kExpertSteps));
}

TEST_CASE(
    "experts spread over ranks: saved on 2 ranks, loaded on 6, then on 4: the bits of a run without interruption") {
  ExpertJob job(DType::kBF16);
  const auto expected = job.digests_of_run(4, 1, 5).back();
  SavedState state = job.run_from(nullptr, 2, 2);
  state = job.run_from(&state, 6, 2);
  state = job.run_from(&state, 4, 1);
  CHECK(state.digest == expected);
}

TEST_CASE(
    "experts spread over ranks: fresh weights, the first loss and its gradient norm are those of one set, and rows are "
    "counted") {
  const auto first_step = [](int num_sets, int world_size) {
    ExpertJob job(DType::kF32, num_sets);
    job.config.batch.global_batch_size = 16;
    std::pair<StepResult, std::string> seen;
    Digest128 digest{};
    std::mutex mutex;
    job.on_ranks(world_size, 1, [&](Trainer& trainer) {
      trainer.initialize();
      const Digest128 part = trainer.digest_part();
      const StepResult result = trainer.step(0);
      const std::lock_guard lock(mutex);
      digest += part;
      if (trainer.config().rank == 0) seen.first = result;
    });
    seen.second = digest.to_hex();
    return seen;
  };
  const auto alone = first_step(1, 1);
  CHECK(alone.first.sent.routed == 0);
  for (const int num_sets : {2, 4}) {
    CAPTURE(num_sets);
    const auto apart = first_step(num_sets, num_sets);
    CHECK(apart.second == alone.second);
    CHECK(apart.first.loss == doctest::Approx(alone.first.loss).epsilon(1e-6));
    CHECK(apart.first.grad_norm == doctest::Approx(alone.first.grad_norm).epsilon(1e-5));
    CHECK(apart.first.sent.routed > 0);
  }
}

TEST_CASE("experts spread over ranks: evaluation gives the same bits on 2, 4 and 6 ranks, about those of one set") {
  const auto losses = [](int num_sets, int world_size) {
    ExpertJob job(DType::kF32, num_sets);
    std::vector<double> of_ranks;
    std::mutex mutex;
    job.on_ranks(world_size, 1, [&](Trainer& trainer) {
      trainer.initialize();
      const double before = trainer.evaluate(0).loss;
      trainer.step(0);
      const double after = trainer.evaluate(0).loss;
      const std::lock_guard lock(mutex);
      of_ranks.push_back(before);
      of_ranks.push_back(after);
      CHECK(before != after);
    });
    return of_ranks;
  };
  const auto expected = losses(2, 2);
  CHECK(expected[0] == doctest::Approx(losses(1, 1)[0]).epsilon(1e-6));
  for (const int world_size : {4, 6}) {
    const auto seen = losses(2, world_size);
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i] == expected[i % 2]);
  }
}

TEST_CASE("experts spread over ranks: a rank keeps the parameters of its set and the shared ones") {
  const auto params_of_ranks = [](int num_sets, int world_size) {
    ExpertJob job(DType::kBF16, num_sets);
    job.config.batch.global_batch_size = 16;
    std::vector<std::size_t> bytes(static_cast<std::size_t>(world_size));
    job.on_ranks(world_size, 1, [&](Trainer& trainer) {
      trainer.initialize();
      bytes[static_cast<std::size_t>(trainer.config().rank)] = part_of(trainer, "params");
      for (const OwnedSlice& slice : trainer.slices()) {
        const int expert = trainer.params()[slice.param].expert;
        CHECK((expert < 0 || num_sets == 1 || expert / (4 / num_sets) == trainer.config().rank % num_sets));
      }
    });
    return bytes;
  };
  const std::size_t all = params_of_ranks(1, 1).front(), half = params_of_ranks(2, 2).front();
  const std::size_t quarter = params_of_ranks(4, 4).front();
  CHECK(half < all);
  CHECK((all - half) * 3 == (all - quarter) * 2);
  CHECK(params_of_ranks(2, 4) == std::vector<std::size_t>(4, half));
}

namespace {

/// Small enough for a device that is emulated: two leaves for each of two sets.
struct DeviceExpertJob : ExpertJob {
  explicit DeviceExpertJob(Device device, DType precision = DType::kBF16) : ExpertJob(precision) {
    config.device = device;
    config.model.hidden_size = config.model.intermediate_size = 16;
    config.model.num_attention_heads = config.model.num_key_value_heads = 1;
    config.model.head_dim = 16;
    config.model.num_hidden_layers = 1;
    config.batch = {4, 1, 17};
  }
};

}  // namespace

DEVICE_TEST_CASE(
    "experts spread over CUDA devices: digests are equal on 2 and 4 ranks, with checkpointing, offload, in both "
    "stages") {
  for (const Device device : cuda_devices_here()) {
    for (const DType precision : {DType::kBF16, DType::kF32}) {
      DeviceExpertJob job(device, precision);
      const auto expected = job.digests_of_run(2, 1, 2);
      REQUIRE(expected.front() != expected.back());
      if (precision == DType::kF32) {
        CHECK(job.digests_of_run(4, 1, 1).front() == expected.front());
        continue;
      }
      CHECK(job.digests_of_run(4, 1, 2) == expected);
      job.config.activation_checkpointing = true;
      job.config.zero.offload = Offload::kCpu;
      CHECK(job.digests_of_run(4, 1, 1).front() == expected.front());
      job.config.zero.stage = 1;
      job.config.zero.lanes = 4;
      CHECK(job.digests_of_run(2, 1, 1).front() == expected.front());
    }
  }
}

DEVICE_TEST_CASE(
    "experts spread over CUDA devices: saved on 2 ranks, loaded on 4, one frozen, many buckets: the same bits") {
  for (const Device device : cuda_devices_here()) {
    DeviceExpertJob job(device);
    job.config.model.num_hidden_layers = 2;
    job.config.param_groups = {{"*.experts.1.*", 1, {}, true}};
    job.config.zero.bucket_bytes = 16384;  // two blocks, so that those of experts and those that all share take turns
    const auto expected = job.digests_of_run(2, 1, 2).back();
    SavedState state = job.run_from(nullptr, 4, 1);
    state = job.run_from(&state, 2, 1);
    CHECK(state.digest == expected);
  }
}

DEVICE_TEST_CASE("experts spread over CUDA devices: losses, also of validation data, are about those of one set") {
  for (const Device device : cuda_devices_here()) {
    const auto losses = [&](Device where, int num_sets, int world_size) {
      DeviceExpertJob job(where, DType::kF32);
      job.config.zero.expert_parallel_size = num_sets;
      std::vector<double> seen;
      std::mutex mutex;
      job.on_ranks(world_size, 1, [&](Trainer& trainer) {
        trainer.initialize();
        const double first = trainer.step(0).loss, of_validation = trainer.evaluate(0).loss;
        const std::lock_guard lock(mutex);
        seen.push_back(first);
        seen.push_back(of_validation);
      });
      return seen;
    };
    const auto alone = losses(Device{}, 1, 1), apart = losses(device, 2, 4);
    for (std::size_t i = 0; i < apart.size(); ++i) {
      CHECK(apart[i] == apart[i % 2]);
      CHECK(apart[i] == doctest::Approx(alone[i % 2]).epsilon(1e-5));
    }
  }
}

TEST_CASE("experts spread over ranks: invalid configurations are refused") {
  ExpertJob job(DType::kBF16);
  CHECK(code_of([&] { job.on_ranks(3, 1, [](Trainer&) {}); }) == "invalid_argument");
  job.config.model.num_experts = 5;
  CHECK(code_of([&] { job.on_ranks(2, 1, [](Trainer&) {}); }) == "invalid_argument");
  ExpertJob dense(DType::kBF16);
  dense.config.model.num_experts = 0;
  dense.config.model.naming = "llama";
  CHECK(code_of([&] { dense.on_ranks(2, 1, [](Trainer&) {}); }) == "model_has_no_experts");
  ExpertJob lonely(DType::kBF16);
  lonely.config.world_size = 2;
  auto world = make_thread_comms(2, 1s);
  CHECK(code_of([&] { Trainer(lonely.config, std::move(world[0])); }) == "invalid_argument");
}
