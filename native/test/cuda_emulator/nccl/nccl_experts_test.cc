// Experts that are spread over ranks which connect through NCCL: the calls that its communicators get in a training.
#include <doctest/doctest.h>

#include <algorithm>
#include <barrier>
#include <mutex>
#include <string>
#include <vector>

#include "test/cuda_emulator/emulator.h"
#include "test/cuda_emulator/nccl/nccl_ranks.h"
#include "test/devices_here.h"
#include "test/model/expert_sets.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

/// Two sets of experts, a layer of them, and many buckets; of one set all first matrices of an expert are frozen.
struct NcclJob : TinyJob {
  NcclJob() : TinyJob(DType::kBF16) {
    for (const auto& [name, model] : family_configs()) {
      if (name == "mixtral") config.model = model;
    }
    config.device = kFirstGpu;
    config.model.num_experts = 4;
    config.model.hidden_size = config.model.intermediate_size = 16;
    config.model.num_attention_heads = config.model.num_key_value_heads = 1;
    config.model.head_dim = 16;
    config.zero.expert_parallel_size = 2;
    config.zero.bucket_bytes = 16384;
    config.batch = {4, 1, 17};
    config.param_groups = {{"*.experts.1.*", 1, {}, true}};
  }
};

/// Counts of a step of all ranks when all memory is allocated.
emulator::Counts counts_of_step(const NcclJob& job, int world_size) {
  emulator::Counts before, after;
  std::barrier all_here(world_size);
  const auto codes = on_nccl_ranks(job.config, world_size, [&](Trainer& trainer) {
    trainer.step(0);
    all_here.arrive_and_wait();
    if (trainer.config().rank == 0) before = emulator::counts();
    all_here.arrive_and_wait();
    trainer.step(0);
    all_here.arrive_and_wait();
    if (trainer.config().rank == 0) after = emulator::counts();
    all_here.arrive_and_wait();
  });
  CHECK(codes == std::vector<std::string>(static_cast<std::size_t>(world_size), "none"));
  return {after.allocations - before.allocations, after.pool_growths - before.pool_growths,
          after.launches - before.launches, after.copies - before.copies, after.waits - before.waits};
}

}  // namespace

DEVICE_TEST_CASE("experts over NCCL: the bits of other communicators, and a rank has one exchange at a time") {
  NcclJob job;
  job.config.model.num_hidden_layers = 1;
  const std::string expected = job.digests_of_run(2, 1, 2).back();
  Digest128 digest{};
  std::mutex mutex;
  const auto codes = on_nccl_ranks(job.config, 4, [&](Trainer& trainer) {
    for (int step = 0; step < 2; ++step) trainer.step(0);
    const Digest128 part = trainer.digest_part();
    const std::lock_guard lock(mutex);
    digest += part;
  });
  CHECK(codes == std::vector<std::string>(4, "none"));
  CHECK(digest.to_hex() == expected);
}

DEVICE_TEST_CASE("experts over NCCL: one exchange at a time, too, where it is evaluated") {
  NcclJob job;
  job.config.batch = {12, 3, 17};
  const auto codes = on_nccl_ranks(job.config, 2, [&](Trainer& trainer) {
    trainer.step(0);
    trainer.evaluate(0);
  });
  CHECK(codes == std::vector<std::string>(2, "none"));
}

// The thread of the model waits as for other leaves (see launches_test.cc), and once a layer for numbers of rows. The
// communication thread waits twice for an exchange of rows: until it is ready, and for its own stream. Each layer has
// three such exchanges forward and two backward. The thread does not wait for the two exchanges of buckets. Here each
// token has a row for each expert, so that memory does not grow meanwhile.
DEVICE_TEST_CASE("experts over NCCL: each leaf starts the same work, and waits for numbers of rows once a layer") {
  NcclJob job;
  job.config.model.num_experts = job.config.model.experts_per_token = 2;
  job.config.model.num_hidden_layers = 1;
  job.config.zero.bucket_bytes = std::int64_t{1} << 24;
  job.config.param_groups = {};
  emulator::Counts counts[3];
  for (const std::int64_t leaves : {1, 2, 3}) {  // of each of two ranks
    job.config.batch.global_batch_size = 2 * leaves;
    counts[leaves - 1] = counts_of_step(job, 2);
    CHECK(counts[leaves - 1].pool_growths == 0);
  }
  CHECK(counts[2].launches - counts[1].launches == counts[1].launches - counts[0].launches);
  CHECK(counts[2].copies - counts[1].copies == counts[1].copies - counts[0].copies);
  CHECK(counts[1].waits - counts[0].waits == 2 * (4 + 1 + 1 + 2 * 5));
  CHECK(counts[2].waits - counts[1].waits == counts[1].waits - counts[0].waits);
}

DEVICE_TEST_CASE("experts over NCCL: a rank that dies between its exchanges is a typed error on all others") {
  const auto codes = on_nccl_ranks(NcclJob().config, 4, [](Trainer& trainer) {
    trainer.step(0);
    if (trainer.config().rank == 1) throw Error("test", "the rank dies");
    trainer.step(0);
  });
  for (std::size_t rank = 0; rank < codes.size(); ++rank) CHECK(codes[rank] == (rank == 1 ? "test" : "comm_failed"));
}

// All tokens are one, so all are sent to one expert, and to one of two ranks.
DEVICE_TEST_CASE("experts on other ranks: rows without memory are a typed error, which names the even share") {
  ModelConfig config = NcclJob().config.model;
  config.num_experts = 2;
  config.experts_per_token = 1;
  config.intermediate_size = 4096;
  std::barrier built(2);
  std::mutex mutex;
  std::string message;
  const auto codes = on_sets(
      2,
      [&](ExpertExchange& ranks, const Context& ctx) {
        RandomModel model(ctx, config, DType::kBF16, {.experts = &ranks}, {1, 64});
        model.tokens.assign(64, 5);
        built.arrive_and_wait();
        if (ranks.set() == 0) emulator::set_memory_bytes(cuda::memory_of(kFirstGpu).in_use + (std::size_t{1} << 19));
        built.arrive_and_wait();
        try {
          model.model().forward(model.leaf({}));
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          if (error.code() == "out_of_memory") message = error.what();
          throw;
        }
      },
      kFirstGpu);
  emulator::set_memory_bytes(std::size_t{4} << 30);
  CHECK(std::ranges::count(codes, "out_of_memory") == 1);
  CHECK(std::ranges::count(codes, "comm_failed") == 1);
  CHECK(message.starts_with(
      "routers sent 128 rows to the experts of this rank, where 64 are an even share: cannot allocate"));
}
