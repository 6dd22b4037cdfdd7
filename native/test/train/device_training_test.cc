// Whole trainings on CUDA devices: the promise of exactness_test.cc, and losses that follow the CPU's. Ranks are
// threads that share one device.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "core/cuda/cuda_runtime.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/sanitized.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr int kDeviceSteps = 2;

/// Three leaves a step, so that it can be run often on a device that is emulated.
struct DeviceJob : TinyJob {
  DeviceJob(Device device, DType precision) : TinyJob(precision) {
    config.device = device;
    config.batch.global_batch_size = 6;
  }
};

std::vector<double> losses_of(TinyJob& job, int num_steps) {
  std::vector<double> losses;
  job.on_ranks(1, 1, [&](Trainer& trainer) {
    trainer.initialize();
    for (int step = 0; step < num_steps; ++step) losses.push_back(trainer.step(0).loss);
  });
  return losses;
}

}  // namespace

DEVICE_TEST_CASE("CUDA devices: digests are equal after each step for 1, 2 and 3 ranks, and between runs") {
  for (const Device device : cuda_devices_here()) {
    for (const DType precision : {DType::kBF16, DType::kF32}) {
      DeviceJob job(device, precision);
      const auto expected = job.digests_of_run(1, 1, kDeviceSteps);
      REQUIRE(expected.front() != expected.back());
      for (const int world_size : {1, 2, 3}) {
        if (kSanitized && world_size < 3) continue;  // the accesses of three
        CAPTURE(world_size);
        CHECK(job.digests_of_run(world_size, 1, kDeviceSteps) == expected);
      }
    }
  }
}

DEVICE_TEST_CASE(
    "CUDA devices: models with experts have equal digests for 1 rank, and for 3 with activation checkpointing") {
  for (const Device device : cuda_devices_here()) {
    DeviceJob job(device, DType::kBF16);
    job.config.model.naming = "mixtral";
    job.config.model.num_experts = 7;
    job.config.model.experts_per_token = 2;
    job.config.model.router_aux_loss_coef = 0.02;
    job.config.model.hidden_size = job.config.model.intermediate_size = 16;
    job.config.model.num_attention_heads = job.config.model.num_key_value_heads = 1;
    job.config.model.num_hidden_layers = 1;
    job.config.batch = {3, 1, 17};
    const auto expected = job.digests_of_run(1, 1, 1);
    job.config.activation_checkpointing = true;
    CHECK(job.digests_of_run(3, 1, 1) == expected);
  }
}

DEVICE_TEST_CASE(
    "CUDA devices: a job that is saved and loaded on another number of ranks ends like one that never stopped") {
  for (const Device device : cuda_devices_here()) {
    DeviceJob job(device, DType::kBF16);
    const auto expected = job.digests_of_run(1, 1, 3).back();
    SavedState state = job.run_from(nullptr, 2, 1);
    state = job.run_from(&state, 3, 1);
    state = job.run_from(&state, 1, 1);
    CHECK(state.digest == expected);
  }
}

DEVICE_TEST_CASE("CUDA devices: offload, activation checkpointing and stage 1 with a lane per leaf change no bit") {
  for (const Device device : cuda_devices_here()) {
    DeviceJob job(device, DType::kBF16);
    const auto expected = job.digests_of_run(2, 1, kDeviceSteps);
    job.config.activation_checkpointing = true;
    CHECK(job.digests_of_run(2, 1, kDeviceSteps) == expected);
    job.config.activation_checkpointing = false;
    job.config.zero.offload = Offload::kCpu;
    CHECK(job.digests_of_run(2, 1, kDeviceSteps) == expected);
    job.config.zero.offload = Offload::kNone;
    job.config.zero.stage = 1;
    job.config.zero.lanes = 3;
    CHECK(job.digests_of_run(2, 1, kDeviceSteps) == expected);
  }
}

DEVICE_TEST_CASE("CUDA devices: losses follow the CPU's, and dropout drops the same elements") {
  for (const Device device : cuda_devices_here()) {
    for (const double dropout : {0.0, 0.1}) {
      DeviceJob there(device, DType::kF32), here(Device{}, DType::kF32);
      for (TinyJob* job : {&there, &here}) {
        job->config.model.residual_dropout = dropout;
        job->config.model.attention_dropout = dropout;
        job->config.model.embedding_dropout = dropout;
      }
      const auto actual = losses_of(there, kDeviceSteps), expected = losses_of(here, kDeviceSteps);
      for (std::size_t step = 0; step < expected.size(); ++step)
        CHECK(actual[step] == doctest::Approx(expected[step]).epsilon(1e-5));
    }
  }
}

DEVICE_TEST_CASE(
    "CUDA devices: steps wait for no memory: it is there after the first one, or before where it was reserved") {
  for (const Device device : cuda_devices_here()) {
    for (const Offload offload : {Offload::kNone, Offload::kCpu}) {
      DeviceJob job(device, DType::kBF16);
      job.config.zero.offload = offload;
      std::size_t needed = 0;
      for (const bool reserved : {false, true}) {
        // Beyond the memory that earlier tests have left in the pool.
        const auto before = cuda::memory_of(device);
        job.config.reserved_bytes = reserved ? before.reserved - before.in_use + needed : 0;
        job.on_ranks(1, 1, [&](Trainer& trainer) {
          const std::size_t at_start = cuda::memory_of(device).reserved;
          trainer.initialize();
          trainer.step(0);
          const std::size_t after_one = cuda::memory_of(device).reserved;
          trainer.step(0);
          trainer.step(0);
          CHECK(cuda::memory_of(device).reserved == after_one);
          if (reserved) CHECK(after_one == at_start);
          for (const MemoryPart& part : trainer.memory()) needed += part.num_bytes;
        });
      }
    }
  }
}

DEVICE_TEST_CASE("CUDA devices: a training that does not fit is refused at the start, with the numbers") {
  for (const Device device : cuda_devices_here()) {
    DeviceJob job(device, DType::kBF16);
    const auto memory = cuda::memory_of(device);
    job.config.reserved_bytes = memory.total + memory.reserved;
    CHECK(code_of([&] { job.on_ranks(1, 1, [](Trainer&) {}); }) == "out_of_memory");
  }
}

DEVICE_TEST_CASE("CUDA devices: the loss of validation data is the CPU's") {
  for (const Device device : cuda_devices_here()) {
    double losses[2] = {};
    for (int i = 0; i < 2; ++i) {
      DeviceJob job(i == 0 ? Device{} : device, DType::kF32);
      job.on_ranks(1, 1, [&](Trainer& trainer) {
        trainer.initialize();
        losses[i] = trainer.evaluate(0).loss;
      });
    }
    CHECK(losses[1] == doctest::Approx(losses[0]).epsilon(1e-6));
  }
}
