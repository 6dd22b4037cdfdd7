// GELU in the products of a GPT-2's MLP, on a cuBLASLt with and without it. The tests check the launched kernels and
// the result.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test/cuda_emulator/cublaslt/fake_cublaslt.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/sanitized.h"
#include "test/train/tiny_job.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kLeaves = 3;

class Gpt2Job : public TinyJob {
 public:
  Gpt2Job() : TinyJob(DType::kBF16) {
    ModelConfig& model = config.model;
    config.device = {DeviceKind::kCuda, 0};
    model.naming = "gpt2";
    model.norm = NormType::kLayer;
    model.positions = PositionType::kLearned;
    model.num_key_value_heads = model.num_attention_heads;
    model.qkv_bias = model.output_bias = model.mlp_bias = true;
    model.mlp = MlpType::kGeluTanh;
    model.tie_word_embeddings = true;
    config.batch.micro_batch_size = 1;
    config.batch.global_batch_size = kLeaves;
  }
};

struct Started {
  std::int64_t kernels, gelus;
};

/// By a step when all is prepared: our own kernels, and products with GELU.
Started started_by_step(Gpt2Job& job, const FakeCublaslt& fake) {
  Started started{};
  job.on_ranks(1, 1, [&](Trainer& trainer) {
    trainer.initialize();
    trainer.step(0);
    const auto kernels = static_cast<std::int64_t>(emulator::counts().launches);
    const int gelus = fake.num_gelus();
    trainer.step(0);
    started = {static_cast<std::int64_t>(emulator::counts().launches) - kernels, fake.num_gelus() - gelus};
  });
  return started;
}

}  // namespace

DEVICE_TEST_CASE("a GPT-2's layer starts two kernels less where products have GELU, and three where it is recomputed") {
  const EnvironmentVariable library("ZF_CUBLASLT", ZF_FAKE_CUBLASLT);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  for (const bool checkpointing : {false, true}) {
    if (kSanitized && !checkpointing) continue;  // the same accesses, fewer of them
    // Checkpointing keeps the last layer's values.
    const std::int64_t layers = 2, gelus = kLeaves * (2 * layers + (checkpointing ? layers - 1 : 0));
    Gpt2Job job;
    job.config.activation_checkpointing = checkpointing;
    fake.have_gelu(true);
    const Started fused = started_by_step(job, fake);
    fake.have_gelu(false);
    const Started apart = started_by_step(job, fake);
    CHECK(fused.gelus == gelus);
    CHECK(apart.gelus == 0);
    CHECK(apart.kernels - fused.kernels == gelus);
  }
}

DEVICE_TEST_CASE("a GPT-2 with GELU in its products: equal digests for 1, 2 and 3 ranks, and with checkpointing") {
  const EnvironmentVariable library("ZF_CUBLASLT", ZF_FAKE_CUBLASLT);
  const FakeCublaslt fake(ZF_FAKE_CUBLASLT);
  Gpt2Job job;
  const int before = fake.num_gelus();
  const std::vector<std::string> expected = job.digests_of_run(1, 1, 2);
  CHECK(fake.num_gelus() > before);
  CHECK(job.digests_of_run(2, 1, 2) == expected);
  job.config.activation_checkpointing = true;
  CHECK(job.digests_of_run(3, 1, 2) == expected);
}
