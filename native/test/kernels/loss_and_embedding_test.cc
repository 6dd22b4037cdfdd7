#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/cross_entropy.h"
#include "kernels/embedding.h"
#include "test/kernels/host_matrix.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr float kGradScale = 0.25F;

struct ExpectedLoss {
  std::vector<double> losses;
  Table gradient;
};

ExpectedLoss expected_of(const HostMatrix& logits, const std::vector<std::int32_t>& targets) {
  ExpectedLoss expected{std::vector<double>(targets.size()), table_of(logits)};
  for (std::size_t row = 0; row < targets.size(); ++row) {
    auto& values = expected.gradient[row];
    double sum = 0, largest = values[0];
    for (const double value : values) largest = std::max(largest, value);
    for (const double value : values) sum += std::exp(value - largest);
    const auto target = static_cast<std::size_t>(targets[row] < 0 ? 0 : targets[row]);
    if (targets[row] >= 0) expected.losses[row] = largest + std::log(sum) - values[target];
    for (double& value : values)
      value = targets[row] < 0 ? 0.0 : std::exp(value - largest) / sum * static_cast<double>(kGradScale);
    if (targets[row] >= 0) values[target] -= static_cast<double>(kGradScale);
  }
  return expected;
}

}  // namespace

TEST_CASE("cross_entropy: losses and gradients, ignored rows, gradient apart from or over the logits") {
  for (const CpuIsa isa : available_isas()) {
    Machine machine(isa, 2);
    for (const DType dtype : kAllDTypes) {
      for (const std::int64_t vocab : {1, 5, 64, 777}) {
        CAPTURE(std::string(name_of(isa)) + " " + name_of(dtype) + " V " + std::to_string(vocab));
        std::mt19937 random(37);
        const HostMatrix logits = HostMatrix::random(DType::kF32, 70, vocab, random, 3, 4.0F);
        std::vector<std::int32_t> targets(70);
        for (auto& target : targets) target = static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab));
        targets[3] = targets[69] = -100;
        const ExpectedLoss expected = expected_of(logits, targets);

        HostMatrix work = logits, dlogits(dtype, 70, vocab, 1);
        std::vector<float> losses(70), again(70);
        cross_entropy(machine.ctx, {work.view(), targets, losses, dlogits.view(), kGradScale});
        for (std::size_t row = 0; row < 70; ++row) {
          CHECK(static_cast<double>(losses[row]) == doctest::Approx(expected.losses[row]).epsilon(2e-6));
        }
        if (vocab > 1) CHECK(relative_error(dlogits, expected.gradient) < tolerance(dtype));

        HostMatrix shared = logits;
        const Matrix view = shared.view();
        const auto per_float = static_cast<std::int64_t>(sizeof(float) / size_of(dtype));
        const Matrix over{view.data, dtype, 70, vocab, view.stride * per_float};
        cross_entropy(machine.ctx, {view, targets, again, over, kGradScale});
        CHECK(again == losses);
        bool same = true;
        for (std::int64_t i = 0; i < 70; ++i) {
          same = same && std::memcmp(over.at(i, 0), dlogits.view().at(i, 0),
                                     static_cast<std::size_t>(vocab) * size_of(dtype)) == 0;
        }
        CHECK(same);
      }
    }
  }
}

TEST_CASE("cross_entropy: huge logits stay finite, NaN and infinity are not hidden") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const CpuIsa isa : available_isas()) {
    CAPTURE(name_of(isa));
    Machine machine(isa, 1);
    HostMatrix logits(DType::kF32, 4, 40);
    const std::vector<std::int32_t> targets{0, 1, 2, 3};
    logits.set(0, 0, 3e38F);
    logits.set(1, 7, 1000.0F);
    logits.set(2, 5, std::numeric_limits<float>::quiet_NaN());
    logits.set(3, 6, kInf);
    std::vector<float> losses(4);
    cross_entropy(machine.ctx, {logits.view(), targets, losses, {}, 0});
    CHECK(losses[0] == 0.0F);
    CHECK(losses[1] == 1000.0F);
    CHECK(std::isnan(losses[2]));
    CHECK(!std::isfinite(losses[3]));
    const std::vector<std::int32_t> outside{0, 1, 40, 3};
    CHECK_THROWS_AS(cross_entropy(machine.ctx, {logits.view(), outside, losses, {}, 0}), Error);
    const std::vector<std::int32_t> ignored(4, -100);
    Matrix no_vocabulary = logits.view();
    no_vocabulary.cols = 0;
    CHECK_THROWS_AS(cross_entropy(machine.ctx, {no_vocabulary, ignored, losses, {}, 0}), Error);
  }
}

TEST_CASE("embedding gathers rows, and its backward adds them up in rising position") {
  for (const CpuIsa isa : available_isas()) {
    for (const DType dtype : kAllDTypes) {
      std::mt19937 random(41);
      HostMatrix table = HostMatrix::random(dtype, 600, 19, random), rows(dtype, 200, 19, 2);
      const HostMatrix drows = HostMatrix::random(dtype, 200, 19, random, 1);
      std::vector<std::int32_t> tokens(200);
      for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 9U) * 74;
      std::vector<HostMatrix> results;
      for (const int threads : {1, 2, 3}) {
        Machine machine(isa, threads);
        embedding(machine.ctx, table.view(), tokens, rows.view());
        for (std::int64_t i = 0; i < 200; ++i)
          CHECK(rows.at(i, 18) == table.at(tokens[static_cast<std::size_t>(i)], 18));

        HostMatrix grads = drows, dtable(DType::kF32, 600, 19), expected(DType::kF32, 600, 19);
        dtable.set(5, 5, 99.0F);  // what stood there before is overwritten
        embedding_backward(machine.ctx, tokens, grads.view(), dtable.view(), false);
        for (std::int64_t i = 0; i < 200; ++i) {
          for (std::int64_t j = 0; j < 19; ++j) {
            const std::int64_t token = tokens[static_cast<std::size_t>(i)];
            expected.set(token, j, static_cast<float>(expected.at(token, j)) + static_cast<float>(drows.at(i, j)));
          }
        }
        CHECK(dtable == expected);
        embedding_backward(machine.ctx, tokens, grads.view(), dtable.view(), true);
        CHECK(dtable.at(tokens[0], 0) == doctest::Approx(2 * expected.at(tokens[0], 0)).epsilon(1e-5));
      }
    }
  }
}

TEST_CASE("embedding refuses tokens outside the vocabulary by code") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix table(DType::kF32, 4, 3), rows(DType::kF32, 2, 3);
  for (const std::int32_t bad : {-1, 4}) {
    const std::vector<std::int32_t> tokens{0, bad};
    try {
      embedding(machine.ctx, table.view(), tokens, rows.view());
      FAIL("accepted token " << bad);
    } catch (const Error& error) {
      CHECK(error.code() == "token_out_of_vocab");
    }
  }
}
