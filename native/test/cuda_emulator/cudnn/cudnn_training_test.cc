// Whole trainings whose attention cuDNN computes: the promise of exactness_test.cc, and losses that follow our own
// kernels'.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test/cuda_emulator/cublaslt/fake_cublaslt.h"
#include "test/cuda_emulator/cudnn/fake_cudnn.h"
#include "test/devices_here.h"
#include "test/sanitized.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Libraries {
  EnvironmentVariable cublaslt{"ZF_CUBLASLT", ZF_FAKE_CUBLASLT}, cudnn{"ZF_CUDNN", ZF_FAKE_CUDNN};
  EnvironmentVariable compute{"ZF_EMULATED_COMPUTE", "9"};
};

/// Heads of 8 columns; three leaves a step.
struct AttentionJob : TinyJob {
  AttentionJob() : TinyJob(DType::kBF16) {
    config.device = kFirstGpu;
    config.model.num_attention_heads = 6;
    config.model.num_key_value_heads = 3;
    config.model.head_dim = 8;
    config.batch.global_batch_size = 6;
  }
};

double loss_after_two_steps(AttentionJob& job) {
  double loss = 0;
  job.on_ranks(1, 1, [&](Trainer& trainer) {
    trainer.initialize();
    trainer.step(0);
    loss = trainer.step(0).loss;
  });
  return loss;
}

}  // namespace

DEVICE_TEST_CASE("cuDNN's attention: digests are equal for 1, 2 and 3 ranks, with checkpointing, and after a stop") {
  const Libraries libraries;
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  AttentionJob job;
  const int forwards = fake.num_forwards(), backwards = fake.num_backwards();
  const auto expected = job.digests_of_run(1, 1, 2);
  CHECK(fake.num_forwards() - forwards == 2 * 2 * 3 + 1);  // steps, layers and leaves, and a trial
  CHECK(fake.num_backwards() - backwards == 2 * 2 * 3 + 1);
  for (const int world_size : {2, 3}) CHECK(job.digests_of_run(world_size, 1, 2) == expected);
  job.config.activation_checkpointing = true;
  CHECK(job.digests_of_run(2, 1, 2) == expected);
  job.config.activation_checkpointing = false;
  SavedState state = job.run_from(nullptr, 2, 1);
  state = job.run_from(&state, 3, 1);
  CHECK(state.digest == expected.back());
}

DEVICE_TEST_CASE("cuDNN's attention: losses follow those of our own kernels, which compute what it does not") {
  const Libraries libraries;
  const FakeCudnn fake(ZF_FAKE_CUDNN);
  for (const std::int64_t window : {0, 5}) {
    if (kSanitized && window == 0) continue;  // the other job has a layer without one
    AttentionJob job;
    job.config.model.layer_windows = {0, window};
    const double by_cudnn = loss_after_two_steps(job);
    const int before = fake.num_forwards();
    const EnvironmentVariable off("ZF_CUDNN", "off");
    CHECK(loss_after_two_steps(job) == doctest::Approx(by_cudnn).epsilon(1e-3));
    CHECK(fake.num_forwards() == before);
  }
  AttentionJob dropping;
  dropping.config.model.attention_dropout = 0.1;
  const int before = fake.num_forwards();
  loss_after_two_steps(dropping);
  CHECK(fake.num_forwards() == before);
}
