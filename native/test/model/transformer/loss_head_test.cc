#include "model/transformer/loss_head.h"

#include <doctest/doctest.h>

#include <vector>

#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Results {
  LeafResult loss;
  HostMatrix dnormed, dweight;
};

Results run(CpuIsa isa, DType dtype, std::int64_t max_gradient_bytes) {
  constexpr std::int64_t kRows = 150, kHidden = 20, kVocab = 70;
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
  LossHead head(model, kRows, max_gradient_bytes);
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
      const Results whole = run(isa, dtype, kMaxLogitGradientBytes), chunks = run(isa, dtype, 64 * 70 * 2);
      CHECK(whole.loss.num_targets == 149);
      CHECK(whole.loss.loss_sum == chunks.loss.loss_sum);
      CHECK(whole.dnormed == chunks.dnormed);
      CHECK(whole.dweight == chunks.dweight);
    }
  }
}
