#include "model/transformer/loss_head.h"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "test/devices_here.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Results {
  LeafResult loss;
  HostMatrix dnormed, dweight;
};

constexpr std::int64_t kRows = 150;

Results run(CpuIsa isa, DType dtype, const LogitRows& at_once) {
  constexpr std::int64_t kHidden = 20, kVocab = 70;
  Machine machine(isa, 2);
  Scratch scratch(machine.ctx);
  ModelConfig config;
  config.hidden_size = kHidden;
  config.vocab_size = kVocab;
  const ModelContext model{machine.ctx, config, dtype, &scratch, nullptr};
  std::mt19937 random(43);
  HostMatrix normed = HostMatrix::random(dtype, kRows, kHidden, random),
             weight = HostMatrix::random(dtype, kVocab, kHidden, random);
  std::vector<std::int32_t> targets(kRows);
  for (auto& target : targets) target = static_cast<std::int32_t>(random() % kVocab);
  targets[100] = -100;
  Results results{{}, HostMatrix(dtype, kRows, kHidden), HostMatrix(DType::kF32, kVocab, kHidden)};
  const LossHead::Gradients gradients{results.dnormed.view(), results.dweight.view(), 0.01F};
  LossHead head(model, kRows, at_once);
  head.pack(model, weight.view().data);
  head.run(model, normed.view(), targets, &gradients);
  results.loss = head.result(targets);
  return results;
}

}  // namespace

TEST_CASE("the loss head gives the same bits in one chunk of rows or in several, the last of them shorter") {
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(name_of(isa));
      const Results whole = run(isa, dtype, {kRows, kRows}), chunks = run(isa, dtype, {64, 128});
      CHECK(whole.loss.num_targets == 149);
      CHECK(whole.loss.loss_sum == chunks.loss.loss_sum);
      CHECK(whole.dnormed == chunks.dnormed);
      CHECK(whole.dweight == chunks.dweight);
    }
  }
}

TEST_CASE("rows of logits: those of a CPU stay in its caches, chunks of gradients are alike") {
  const auto rows = [](std::int64_t vocab, DType dtype, std::int64_t max_rows) { return logit_rows({}, vocab, dtype, max_rows); };
  CHECK(rows(50'257, DType::kBF16, 16'384) == LogitRows{64, 640});
  CHECK(rows(50'257, DType::kF32, 16'384) == LogitRows{64, 320});
  CHECK(rows(128'256, DType::kBF16, 16'384) == LogitRows{64, 256});
  CHECK(rows(50'257, DType::kBF16, 700) == LogitRows{64, 384});
  CHECK(rows(301, DType::kBF16, 50) == LogitRows{50, 50});
  CHECK(rows(50'257, DType::kBF16, 1) == LogitRows{1, 1});
}

DEVICE_TEST_CASE("rows of logits: a chunk of a GPU has one product of each kind") {
  for (const Device device : cuda_devices_here()) {
    const auto rows = [&](std::int64_t vocab, DType dtype, std::int64_t max_rows) {
      const LogitRows at_once = logit_rows(device, vocab, dtype, max_rows);
      CHECK(at_once.logits == at_once.gradients);
      return at_once.logits;
    };
    CHECK(rows(50'257, DType::kBF16, 16'384) == 4096);
    CHECK(rows(50'257, DType::kF32, 16'384) == 4096);
    CHECK(rows(128'256, DType::kBF16, 16'384) == 2048);
    CHECK(rows(128'256, DType::kBF16, 5000) == 1728);
    CHECK(rows(50'257, DType::kBF16, 100) == 100);
  }
}
