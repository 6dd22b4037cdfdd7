#include "model/transformer/loss_head.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "test/devices_here.h"
#include "test/kernels/every_path.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

struct Results {
  LeafResult loss;
  std::vector<SequenceScore> scores;  // of sequences of kSequence
  HostMatrix dnormed, dweight;
  std::int64_t kept_logit_rows = 0;
};

constexpr std::int64_t kRows = 150, kSequence = 25;
const std::vector<float> kFactors{0.5F, -0.25F, 0.01F, 0, 3, -1};  // of sequences

std::vector<std::int32_t> sequences_of_rows() {
  std::vector<std::int32_t> sequences;
  for (std::int64_t row = 0; row < kRows; ++row) sequences.push_back(static_cast<std::int32_t>(row / kSequence));
  return sequences;
}

enum class Passes { kOne, kTwo };

/// factors: of sequences. kTwo: the factors are known once the losses are.
Results run(const Context& ctx, DType dtype, const LogitRows& at_once, float grad_scale,
            std::span<const float> factors = {}, Passes passes = Passes::kOne) {
  constexpr std::int64_t kHidden = 20, kVocab = 70;
  Scratch scratch(ctx);
  ModelConfig config;
  config.hidden_size = kHidden;
  config.vocab_size = kVocab;
  const ModelContext model{ctx, config, dtype, &scratch, nullptr};
  std::mt19937 random(43);
  HostMatrix normed = HostMatrix::random(dtype, kRows, kHidden, random),
             weight = HostMatrix::random(dtype, kVocab, kHidden, random);
  SharedValues<std::int32_t> values(kRows);
  for (auto& target : values) target = static_cast<std::int32_t>(random() % kVocab);
  values[100] = -100;
  const Indices targets{values, values.data()};
  Results results{{}, {}, HostMatrix(dtype, kRows, kHidden), HostMatrix(DType::kF32, kVocab, kHidden), 0};
  const std::vector<std::int32_t> sequences = sequences_of_rows();
  std::vector<float> of_rows;
  for (const std::int32_t sequence : sequences) {
    if (!factors.empty()) of_rows.push_back(factors[static_cast<std::size_t>(sequence)]);
  }
  LossHead::Gradients gradients{results.dnormed.view(), results.dweight.view(), grad_scale};
  LossHead head(model, kRows, at_once);
  head.pack(model, weight.view().data);
  if (passes == Passes::kTwo) {
    head.run(model, normed.view(), targets, gradients, [&] {
      results.scores = head.scores(targets, sequences, kRows / kSequence);
      return std::span<const float>(of_rows);
    });
    results.kept_logit_rows = head.kept_logit_rows();
  } else {
    gradients.factors = of_rows;
    head.run(model, normed.view(), targets, &gradients);
    results.scores = head.scores(targets, sequences, kRows / kSequence);
  }
  synchronize(ctx);
  results.loss = head.result(targets);
  return results;
}

}  // namespace

TEST_CASE("the loss head gives the same bits in one chunk of rows or in several, the last of them shorter") {
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(name_of(isa));
      const Machine machine(isa, 2);
      const Results whole = run(machine.ctx, dtype, {kRows, kRows}, 0.01F),
                    chunks = run(machine.ctx, dtype, {64, 128}, 0.01F);
      CHECK(whole.loss.num_targets == 149);
      CHECK(whole.loss.loss_sum == chunks.loss.loss_sum);
      CHECK(whole.dnormed == chunks.dnormed);
      CHECK(whole.dweight == chunks.dweight);
    }
  }
}

DEVICE_TEST_CASE("the loss head with a factor for each sequence: rows have the bits of that factor for all") {
  on_every_device([](const Context& ctx, DType dtype) {
    const LogitRows at_once{64, 128};  // sequences lie across chunks of both
    const Results got = run(ctx, dtype, at_once, 0, kFactors);
    Table dweight(70, std::vector<double>(20));
    double loss_sum = 0;
    for (std::size_t sequence = 0; sequence < kFactors.size(); ++sequence) {
      std::vector<float> alone(kFactors.size());
      alone[sequence] = kFactors[sequence];
      const Results plain = run(ctx, dtype, at_once, kFactors[sequence]), only = run(ctx, dtype, at_once, 0, alone);
      for (std::int64_t row = 0; row < kRows; ++row) {
        const bool mine = row / kSequence == static_cast<std::int64_t>(sequence);
        for (std::int64_t k = 0; k < 20; ++k) {
          if (mine) REQUIRE(got.dnormed.at(row, k) == plain.dnormed.at(row, k));
          REQUIRE(only.dnormed.at(row, k) == (mine ? got.dnormed.at(row, k) : 0));
        }
      }
      for (std::int64_t token = 0; token < 70; ++token) {
        for (std::int64_t k = 0; k < 20; ++k)
          dweight[static_cast<std::size_t>(token)][static_cast<std::size_t>(k)] += only.dweight.at(token, k);
      }
      CHECK(got.scores[sequence].num_targets == (sequence == 4 ? kSequence - 1 : kSequence));
      loss_sum -= got.scores[sequence].log_prob;
    }
    CHECK(loss_sum == doctest::Approx(got.loss.loss_sum).epsilon(1e-12));
    CHECK(relative_error(got.dweight, dweight) < 1e-6);
    if (ctx.device.kind != DeviceKind::kCpu) return;
    const Results whole = run(ctx, dtype, {kRows, kRows}, 0, kFactors);
    CHECK(whole.dnormed == got.dnormed);
    CHECK(whole.dweight == got.dweight);
  });
}

DEVICE_TEST_CASE("factors that depend on the losses: the same bits whether the logits are kept or computed again") {
  on_every_device([](const Context& ctx, DType dtype) {
    const bool wide = dtype == DType::kF32;
    for (const auto& [at_once, keeps] : {std::pair{LogitRows{64, 128}, false}, std::pair{LogitRows{64, 320}, true},
                                         std::pair{LogitRows{kRows, kRows}, wide}}) {
      const Results one = run(ctx, dtype, at_once, 0, kFactors);
      const Results two = run(ctx, dtype, at_once, 0, kFactors, Passes::kTwo);
      CHECK((two.kept_logit_rows >= kRows) == keeps);
      CHECK(two.loss.loss_sum == one.loss.loss_sum);
      CHECK(two.dnormed == one.dnormed);
      CHECK(two.dweight == one.dweight);
      for (std::size_t sequence = 0; sequence < kFactors.size(); ++sequence)
        CHECK(two.scores[sequence].log_prob == one.scores[sequence].log_prob);
    }
  });
}

DEVICE_TEST_CASE("a factor that is NaN: the gradients of its sequence are NaN, those of others keep their bits") {
  on_every_device([](const Context& ctx, DType dtype) {
    std::vector<float> factors = kFactors;
    factors[1] = std::nanf("");
    for (const Passes passes : {Passes::kOne, Passes::kTwo}) {
      const Results good = run(ctx, dtype, {64, 128}, 0, kFactors, passes);
      const Results got = run(ctx, dtype, {64, 128}, 0, factors, passes);
      for (std::int64_t row = 0; row < kRows; ++row) {
        for (std::int64_t k = 0; k < 20; ++k) {
          const auto value = got.dnormed.at(row, k);
          REQUIRE((row / kSequence == 1 ? std::isnan(value) : value == good.dnormed.at(row, k)));
        }
      }
    }
  });
}

TEST_CASE("rows of logits: those of a CPU stay in its caches, chunks of gradients are alike") {
  const auto rows = [](std::int64_t vocab, DType dtype, std::int64_t max_rows) {
    return logit_rows({}, vocab, dtype, max_rows);
  };
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

// 50257 is odd: rows of logits are padded, k of the gradient of the input ends within a step of every kernel.
DEVICE_TEST_CASE("the loss head with 50257 tokens, in chunks, against float64") {
  constexpr std::int64_t kCount = 5, kHidden = 8, kVocab = 50'257;
  constexpr float kScale = 0.5F;
  on_every_device([](const Context& ctx, DType dtype) {
    std::mt19937 random(47);
    HostMatrix normed = HostMatrix::random(dtype, kCount, kHidden, random),
               weight = HostMatrix::random(dtype, kVocab, kHidden, random);
    SharedValues<std::int32_t> values(std::vector<std::int32_t>{7, kVocab - 1, -100, 0, 40'000});
    Table probs(kCount, std::vector<double>(kVocab)), dnormed(kCount, std::vector<double>(kHidden)),
        dweight(kVocab, std::vector<double>(kHidden));
    const Table x = table_of(normed), w = table_of(weight);
    double loss = 0;
    for (std::size_t row = 0; row < kCount; ++row) {
      if (values[row] < 0) continue;
      double sum = 0;
      for (std::size_t token = 0; token < kVocab; ++token) {
        double logit = 0;
        for (std::size_t k = 0; k < kHidden; ++k) logit += x[row][k] * w[token][k];
        sum += probs[row][token] = std::exp(logit);
      }
      const auto target = static_cast<std::size_t>(values[row]);
      loss += std::log(sum) - std::log(probs[row][target]);
      for (std::size_t token = 0; token < kVocab; ++token) {
        const double d = (probs[row][token] / sum - (token == target ? 1 : 0)) * static_cast<double>(kScale);
        for (std::size_t k = 0; k < kHidden; ++k) {
          dnormed[row][k] += d * w[token][k];
          dweight[token][k] += d * x[row][k];
        }
      }
    }
    Scratch scratch(ctx);
    ModelConfig config;
    config.hidden_size = kHidden;
    config.vocab_size = kVocab;
    const ModelContext model{ctx, config, dtype, &scratch, nullptr};
    HostMatrix got_normed(dtype, kCount, kHidden), got_weight(DType::kF32, kVocab, kHidden);
    LossHead head(model, kCount, {2, 3});
    head.pack(model, weight.view().data);
    const LossHead::Gradients gradients{got_normed.view(), got_weight.view(), kScale};
    const Indices targets{values, values.data()};
    head.run(model, normed.view(), targets, &gradients);
    synchronize(ctx);
    CHECK(head.result(targets).loss_sum == doctest::Approx(loss).epsilon(1e-5));
    CHECK(relative_error(got_normed, dnormed) < std::max(tolerance(dtype), 5e-5));  // of sums of 50257 in fp32
    CHECK(relative_error(got_weight, dweight) < tolerance(dtype));
  });
}
