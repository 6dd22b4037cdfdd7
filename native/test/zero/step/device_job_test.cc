// Whole jobs with the optimizer's core on each device: states, exchanges, optimizers and digests give the bits of plain
// CPU ranks. On a machine with a GPU all ranks share it (see bench/device_ranks.h).
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "bench/device_ranks.h"
#include "test/devices_here.h"
#include "test/zero/fake_job.h"
#include "test/zero/optimizer_types.h"

using namespace zerofleet;
using namespace zerofleet::test;
using zerofleet::bench::DeviceRanks;

namespace {

/// The job's digest after each of `num_steps` steps with ranks that compute on `device`. Gradients are made on the host
/// and copied there.
std::vector<std::string> digests_on(Device device, const FakeJob& job, int world_size, int num_steps) {
  const DeviceRanks::IsDeviceMemory is_device_memory =
      device.kind == DeviceKind::kCpu ? [](const void*) { return true; } : cuda::is_device_memory;
  std::vector<Digest128> sums(static_cast<std::size_t>(num_steps));
  std::mutex mutex;
  rethrow_first(run_ranks(world_size, [&](Communicator& comm) {
    DeviceMachine machine(device), exchange(device);
    DeviceRanks ranks(exchange.ctx, comm, is_device_memory);
    ZeroOptimizer zero(machine.ctx, ranks, job.specs, job.options);
    zero.initialize(5);
    for (int step = 0; step < num_steps; ++step) {
      for (const std::int64_t leaf : zero.leaves()) {
        zero.begin_leaf(leaf);
        for (std::size_t i = job.specs.size(); i-- > 0;) {
          std::vector<float> grad(static_cast<std::size_t>(job.specs[i].numel()));
          for (std::size_t e = 0; e < grad.size(); ++e) {
            grad[e] = job.grad(step, leaf, i, static_cast<std::int64_t>(e)) * static_cast<float>(zero.loss_scale());
          }
          DeviceArray there(machine.ctx, grad);
          zero.add_grad(i, there.span());
          synchronize(machine.ctx);  // the gradient's memory goes away
        }
        zero.end_leaf(job.loss_sum(step, leaf), 60);
      }
      zero.step({1e-2, 0});
      const std::lock_guard lock(mutex);
      sums[static_cast<std::size_t>(step)] += zero.digest_part();
    }
  }));
  std::vector<std::string> texts;
  for (const Digest128& sum : sums) texts.push_back(sum.to_hex());
  return texts;
}

void check_every_device(const FakeJob& job, std::initializer_list<int> world_sizes = {1, 3}) {
  constexpr int kDeviceSteps = 3;
  for (const int world_size : world_sizes) {
    const auto expected = job.digests(world_size, kDeviceSteps);
    for (const Device device : devices_here()) {
      CAPTURE(to_string(device));
      CAPTURE(world_size);
      CHECK(digests_on(device, job, world_size, kDeviceSteps) == expected);
    }
  }
}

}  // namespace

TEST_CASE("every optimizer gives on every device the digests that it gives on the CPU") {
  for (const auto type : kOptimizerTypes) {
    FakeJob job;
    job.options.optimizer.type = type;
    CAPTURE(name_of(type));
    check_every_device(job);
  }
}

TEST_CASE(
    "lanes, groups of them, fp16 with loss scaling, an average, narrow sums and offload give on every device the CPU's "
    "digests") {
  FakeJob lanes;
  lanes.options.num_lanes = 4;
  lanes.options.reduce_dtype = DType::kF32;
  lanes.options.grad_accum_dtype = DType::kBF16;
  check_every_device(lanes);

  FakeJob groups;
  groups.options.lane_group = 2;
  check_every_device(groups, {2, 3, 4});
  groups.options.offload = Offload::kCpu;
  groups.options.grad_accum_dtype = DType::kF16;
  check_every_device(groups, {2, 3, 4});

  FakeJob half;
  half.options.param_dtype = half.options.reduce_dtype = DType::kF16;
  half.options.loss_scale.type = LossScaleType::kStatic;
  half.options.loss_scale.initial_scale = 256;
  half.options.optimizer.ema.decay = 0.75;
  check_every_device(half);
  half.options.offload = Offload::kCpu;
  half.options.master_dtype = DType::kF16;
  check_every_device(half);

  FakeJob offload;
  offload.options.offload = Offload::kCpu;
  check_every_device(offload);
}
