// Number of operations that the host starts on the device, and number of times that it waits.
#include <cuda_runtime_api.h>
#include <doctest/doctest.h>

#include <deque>
#include <random>
#include <vector>

#include "kernels/gemm/gemm.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"
#include "test/sanitized.h"
#include "test/train/tiny_job.h"
#include "zero/exchange/comm_queue.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

emulator::Counts operator-(const emulator::Counts& a, const emulator::Counts& b) {
  return {a.allocations - b.allocations, a.pool_growths - b.pool_growths, a.launches - b.launches, a.copies - b.copies,
          a.waits - b.waits};
}

/// Counts of one step when all memory is allocated.
emulator::Counts counts_of_step(TinyJob& job) {
  emulator::Counts counts;
  job.on_ranks(1, 1, [&](Trainer& trainer) {
    trainer.initialize();
    trainer.step(0);
    const emulator::Counts before = emulator::counts();
    trainer.step(0);
    counts = emulator::counts() - before;
  });
  return counts;
}

}  // namespace

DEVICE_TEST_CASE("varying products share launches, as many as the arguments of a kernel hold") {
  DeviceMachine machine(kFirstGpu);
  std::mt19937 random(6);
  HostMatrix a = HostMatrix::random(DType::kF16, 8, 8, random), c(DType::kF32, 8, 8);
  const SourceOperand source{{a.view()}, SourceRows::kAlongN};
  std::vector<GemmProblem> problems(100,
                                    GemmProblem{a.view(), nullptr, c.view(), false, false, nullptr, &source, true});
  Scratch scratch(machine.ctx);
  gemm(machine.ctx, scratch, std::span(problems).first(1));
  const auto before = emulator::counts();
  gemm(machine.ctx, scratch, problems);
  CHECK(emulator::counts().launches - before.launches == 3);
  synchronize(machine.ctx);
}

// A host that waits leaves the device without work; it has to start the next kernels while the device computes.
DEVICE_TEST_CASE(
    "each leaf starts the same work; the only waits are for its numbers, and the communication thread's for buckets") {
  constexpr std::int64_t kBuckets = 4;
  TinyJob job(DType::kBF16);
  job.config.device = kFirstGpu;
  emulator::Counts counts[3];
  for (const std::int64_t leaves : {1, 2, 3}) {
    job.config.batch.global_batch_size = leaves * job.config.batch.micro_batch_size;
    counts[leaves - 1] = counts_of_step(job);
    CHECK(counts[leaves - 1].pool_growths == 0);
  }
  const emulator::Counts second = counts[1] - counts[0], third = counts[2] - counts[1];
  CHECK(third.launches == second.launches);
  CHECK(third.copies == second.copies);
  // Tokens and targets of the leaf before have left, and their order for the embedding, its losses are there; a bucket
  // is ready, and has been added.
  CHECK(second.waits == 4 + 2 * kBuckets);
  CHECK(third.waits == second.waits);
}

// Only the device knows a router's choices. Besides the waits of every leaf, the host waits once for the load of all
// layers, at the end of the leaf. Here both layers' forwards run twice.
DEVICE_TEST_CASE("experts: a leaf starts the same work whatever its routers choose, and no layer is waited for") {
  TinyJob job(DType::kBF16);
  job.config.device = kFirstGpu;
  job.config.model.naming = "mixtral";
  job.config.model.num_experts = 2;
  job.config.model.experts_per_token = 1;
  job.config.model.hidden_size = job.config.model.intermediate_size = 16;
  job.config.model.num_attention_heads = job.config.model.num_key_value_heads = 1;
  job.config.activation_checkpointing = true;
  job.config.batch.micro_batch_size = 1;
  job.config.zero.bucket_bytes = std::int64_t{1} << 24;  // one
  emulator::Counts counts[3];
  for (const std::int64_t leaves : {1, 2, 3}) {
    job.config.batch.global_batch_size = leaves;
    counts[leaves - 1] = counts_of_step(job);
  }
  const emulator::Counts second = counts[1] - counts[0], third = counts[2] - counts[1];
  CHECK(third.launches == second.launches);
  CHECK(third.copies == second.copies);
  CHECK(second.waits == 4 + 1 + 2);
  CHECK(third.waits == second.waits);
}

// With a factor on the way to the bucket a product writes fp32, which a kernel reads again.
DEVICE_TEST_CASE("a weight's gradient leaves its product in the bucket, without a kernel that rounds it") {
  constexpr std::int64_t kLayers = 2, kWeights = 7;  // of a Llama's layer
  TinyJob job(DType::kBF16);
  job.config.device = kFirstGpu;
  job.config.zero.bucket_bytes = std::int64_t{1} << 24;  // one
  const auto launches_of_leaf = [&](double factor) {
    job.config.zero.gradient_predivide_factor = factor;
    std::int64_t launches[2];
    for (const std::int64_t leaves : {1, 2}) {
      job.config.batch.global_batch_size = leaves * job.config.batch.micro_batch_size;
      launches[leaves - 1] = counts_of_step(job).launches;
    }
    return launches[1] - launches[0];
  };
  CHECK(launches_of_leaf(2) - launches_of_leaf(1) == kLayers * kWeights);
}

DEVICE_TEST_CASE("the size of buckets, by which gradients have room there or not, does not change a digest") {
  TinyJob job(DType::kBF16);
  job.config.device = kFirstGpu;
  job.config.batch.global_batch_size = 3 * job.config.batch.micro_batch_size;
  job.config.zero.bucket_bytes = std::int64_t{1} << 24;
  const auto expected = job.digests_of_run(1, 1, 2);
  for (const std::int64_t bytes : {16384, 40000}) {
    job.config.zero.bucket_bytes = bytes;
    if (!kSanitized) CHECK(job.digests_of_run(1, 1, 2) == expected);  // three ranks make the same accesses
    CHECK(job.digests_of_run(3, 1, 2) == expected);
  }
}

TEST_CASE("exchanges get the device before computation") {
  for (const Device device : cuda_devices_here()) {
    DeviceMachine machine(device);
    CommQueue queue(machine.ctx);
    int least = 0, greatest = 0, of_rank = -1, of_queue = -1;
    REQUIRE(cudaDeviceGetStreamPriorityRange(&least, &greatest) == cudaSuccess);
    cudaStreamGetPriority(machine.stream.handle(), &of_rank);
    cudaStreamGetPriority(queue.context().stream->handle(), &of_queue);
    CHECK(of_rank == least);
    CHECK(of_queue == greatest);
  }
}
