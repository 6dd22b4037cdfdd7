#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "kernels/embedding/embedding.h"
#include "kernels/loss/cross_entropy.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr float kGradScale = 0.25F;

struct ExpectedLoss {
  std::vector<double> losses;
  Table gradient;
};

ExpectedLoss expected_of(const HostMatrix& logits, std::span<const std::int32_t> targets, double cap = 0) {
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
    for (std::size_t i = 0; i < values.size() && cap > 0; ++i) {
      const double share = logits.at(static_cast<std::int64_t>(row), static_cast<std::int64_t>(i)) / cap;
      values[i] *= 1 - share * share;
    }
  }
  return expected;
}

/// Fills the elements behind the columns with `value`.
void fill_padding(HostMatrix& matrix, std::int64_t gap, float value) {
  for (std::int64_t row = 0; row < matrix.rows(); ++row) {
    for (std::int64_t i = 0; i < gap; ++i) matrix.set(row, matrix.cols() + i, value);
  }
}

}  // namespace

DEVICE_TEST_CASE("cross_entropy: losses and gradients, ignored rows, gradient apart from or over the logits") {
  on_every_device([](const Context& ctx, DType dtype) {
    // The last one is longer than a device's read-ahead before it writes.
    for (const auto& [rows, vocab, gap] :
         {std::array<std::int64_t, 3>{70, 1, 3}, {70, 5, 3}, {70, 64, 0}, {70, 777, 3}, {5, 9000, 4}}) {
      CAPTURE(vocab);
      const float cap = vocab % 2 == 0 ? 20 : 0;
      std::mt19937 random(37);
      const HostMatrix logits = HostMatrix::random(DType::kF32, rows, vocab, random, gap, 4.0F);
      SharedValues<std::int32_t> values(static_cast<std::size_t>(rows));
      for (auto& target : values) target = static_cast<std::int32_t>(random() % static_cast<unsigned>(vocab));
      values[3] = values[values.size() - 1] = -100;
      const Indices targets{values, values.data()};
      const ExpectedLoss expected = expected_of(logits, targets.host(), static_cast<double>(cap));

      HostMatrix work = logits, dlogits(dtype, rows, vocab, 1);
      SharedValues<float> losses(values.size()), again(values.size());
      cross_entropy(ctx, {work.view(), targets, losses, dlogits.view(), kGradScale, cap});
      HostMatrix shared = logits;
      const Matrix view = shared.view();
      const auto per_float = static_cast<std::int64_t>(sizeof(float) / size_of(dtype));
      const Matrix in_place{view.data, dtype, rows, vocab, view.stride * per_float};
      cross_entropy(ctx, {view, targets, again, in_place, kGradScale, cap});
      synchronize(ctx);
      for (std::size_t row = 0; row < losses.size(); ++row) {
        CHECK(static_cast<double>(losses[row]) == doctest::Approx(expected.losses[row]).epsilon(2e-6));
      }
      if (vocab > 1) CHECK(relative_error(dlogits, expected.gradient) < tolerance(dtype));
      CHECK(again == losses);
      bool same = true;
      for (std::int64_t i = 0; i < rows; ++i) {
        same = same && std::memcmp(in_place.at(i, 0), dlogits.view().at(i, 0),
                                   static_cast<std::size_t>(vocab) * size_of(dtype)) == 0;
      }
      CHECK(same);
    }
  });
}

DEVICE_TEST_CASE("cross_entropy: a row's factor multiplies its gradient as grad_scale does") {
  on_every_device([](const Context& ctx, DType dtype) {
    constexpr std::int64_t kRows = 5, kVocab = 777;
    for (const float cap : {0.0F, 20.0F}) {
      std::mt19937 random(45);
      const HostMatrix logits = HostMatrix::random(DType::kF32, kRows, kVocab, random, 3, 4.0F);
      const SharedValues<std::int32_t> values(std::vector<std::int32_t>{0, 5, -100, 9, 776});
      const SharedValues<float> factors(std::vector<float>{0.5F, -3, 2, 0, 1});
      const Indices targets{values, values.data()};
      SharedValues<float> losses(kRows), expected_losses(kRows);
      HostMatrix work = logits, dlogits(dtype, kRows, kVocab, 1), expected = dlogits;
      cross_entropy(ctx, {work.view(), targets, losses, dlogits.view(), kGradScale, cap, factors});
      synchronize(ctx);  // the copies below free what it reads
      for (std::int64_t row = 0; row < kRows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        work = logits;
        cross_entropy(ctx, {work.view().row_slice(row, 1), targets.subspan(at, 1),
                            std::span<float>(expected_losses).subspan(at, 1), expected.view().row_slice(row, 1),
                            factors[at] * kGradScale, cap});
        synchronize(ctx);
      }
      CHECK(losses == expected_losses);
      CHECK(dlogits == expected);
      const std::span<const float> few = std::span<const float>(factors).first(4);
      CHECK_THROWS_AS(cross_entropy(ctx, {work.view(), targets, losses, {}, 0, 0, few}), Error);
    }
  });
}

DEVICE_TEST_CASE("cross_entropy: what lies behind the columns of a row is neither read nor written") {
  on_every_device([](const Context& ctx, DType dtype) {
    constexpr std::int64_t kRows = 3, kVocab = 50'257;
    const auto gap = [](DType type) { return type == DType::kF32 ? 3 : 7; };  // as tensors have it
    std::mt19937 random(41);
    HostMatrix logits = HostMatrix::random(DType::kF32, kRows, kVocab, random, gap(DType::kF32)), same = logits;
    fill_padding(logits, gap(DType::kF32), std::numeric_limits<float>::infinity());
    HostMatrix dlogits(dtype, kRows, kVocab, gap(dtype)), expected = dlogits;
    fill_padding(dlogits, gap(dtype), -5);
    const SharedValues<std::int32_t> values(std::vector<std::int32_t>{0, -100, kVocab - 1});
    const Indices targets{values, values.data()};
    SharedValues<float> losses(kRows), expected_losses(kRows);
    cross_entropy(ctx, {logits.view(), targets, losses, dlogits.view(), kGradScale});
    cross_entropy(ctx, {same.view(), targets, expected_losses, expected.view(), kGradScale});
    synchronize(ctx);
    CHECK(losses == expected_losses);
    fill_padding(expected, gap(dtype), -5);
    CHECK(dlogits == expected);
  });
}

DEVICE_TEST_CASE("cross_entropy: huge logits stay finite, NaN and infinity are not hidden") {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  on_every_device([&](const Context& ctx, DType dtype) {
    if (dtype != DType::kF32) return;  // logits have one type
    HostMatrix logits(DType::kF32, 6, 41);
    const SharedValues<std::int32_t> values(std::vector<std::int32_t>{0, 1, 2, 3, 4, 5});
    const Indices targets{values, values.data()};
    logits.set(0, 0, 3e38F);
    logits.set(1, 7, 1000.0F);
    logits.set(2, 5, std::numeric_limits<float>::quiet_NaN());
    logits.set(3, 6, kInf);
    logits.set(4, 40, std::numeric_limits<float>::quiet_NaN());
    logits.set(5, 40, -kInf);
    SharedValues<float> losses(6);
    cross_entropy(ctx, {logits.view(), targets, losses, {}, 0});
    synchronize(ctx);
    CHECK(losses[0] == 0.0F);
    CHECK(losses[1] == 1000.0F);
    CHECK(std::isnan(losses[2]));
    CHECK(!std::isfinite(losses[3]));
    CHECK(std::isnan(losses[4]));
    CHECK(static_cast<double>(losses[5]) == doctest::Approx(std::log(40.0)).epsilon(1e-6));
    std::vector<std::int32_t> outside{0, 1, 41, 3, 4, 5};
    CHECK_THROWS_AS(cross_entropy(ctx, {logits.view(), outside, losses, {}, 0}), Error);
    const std::vector<std::int32_t> ignored(6, -100);
    Matrix no_vocabulary = logits.view();
    no_vocabulary.cols = 0;
    CHECK_THROWS_AS(cross_entropy(ctx, {no_vocabulary, ignored, losses, {}, 0}), Error);
  });
}

namespace {

struct Embedded {
  HostMatrix rows, dtable, twice;
  friend bool operator==(const Embedded&, const Embedded&) = default;
};

/// `gap`: between the rows of the table's gradient.
Embedded embedded(const Context& ctx, HostMatrix& table, const Indices& tokens, HostMatrix& drows, std::int64_t gap) {
  Embedded r{HostMatrix(drows.view().dtype, drows.rows(), drows.cols(), 2),
             HostMatrix(DType::kF32, table.rows(), table.cols(), gap),
             HostMatrix(DType::kF32, table.rows(), table.cols(), gap)};
  r.dtable.set(5, 5, 99.0F);  // previous contents are overwritten
  embedding(ctx, table.view(), tokens, r.rows.view());
  const SortedPositions sorted(tokens.host());
  const SharedValues<std::int32_t> order(sorted.order), starts(sorted.starts);
  const PositionGroups groups{order.data(), starts.data(), std::ssize(sorted.starts) - 1};
  embedding_backward(ctx, tokens, groups, drows.view(), r.dtable.view(), false);
  embedding_backward(ctx, tokens, groups, drows.view(), r.twice.view(), false);
  embedding_backward(ctx, tokens, groups, drows.view(), r.twice.view(), true);
  synchronize(ctx);
  return r;
}

}  // namespace

DEVICE_TEST_CASE("embedding gathers rows, and its backward adds them up in rising position") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const auto& [cols, gap] : {std::array<std::int64_t, 2>{19, 0}, {24, 4}}) {
      std::mt19937 random(41);
      HostMatrix table = HostMatrix::random(dtype, 600, cols, random),
                 drows = HostMatrix::random(dtype, 200, cols, random, gap == 0 ? 1 : 0);
      SharedValues<std::int32_t> values(200);
      for (auto& token : values) token = static_cast<std::int32_t>(random() % 9U) * 74;
      const Indices tokens{values, values.data()};
      const Embedded results = embedded(ctx, table, tokens, drows, gap);
      HostMatrix expected(DType::kF32, 600, cols, gap);
      for (std::int64_t i = 0; i < 200; ++i) {
        const std::int64_t token = values[static_cast<std::size_t>(i)];
        for (std::int64_t j = 0; j < cols; ++j) {
          REQUIRE(results.rows.at(i, j) == table.at(token, j));
          expected.set(token, j, static_cast<float>(expected.at(token, j)) + static_cast<float>(drows.at(i, j)));
        }
      }
      CHECK(results.dtable == expected);
      CHECK(results.twice.at(values[0], 0) == doctest::Approx(2 * expected.at(values[0], 0)).epsilon(1e-5));
      if (ctx.device.kind != DeviceKind::kCpu) continue;
      for (const int threads : {1, 3}) {
        Machine machine(ctx.cpu_isa, threads);
        CHECK(embedded(machine.ctx, table, tokens, drows, gap) == results);
      }
    }
  });
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

TEST_CASE("packed_embedding: the rows of the table that was packed, with words of either kind") {
  on_every_path([](const Context& ctx, DType dtype) {
    std::mt19937 random(5);
    for (const std::int64_t width : {1, 7, 64}) {
      HostMatrix table = HostMatrix::random(dtype, 75, width, random);
      const std::vector<std::int32_t> tokens{74, 0, 31, 32, 31};
      const Indices indices(tokens);
      HostMatrix expected(dtype, std::ssize(tokens), width), rows = expected;
      embedding(ctx, table.view(), indices, expected.view());
      for (const PackedWords words : {PackedWords::kFastest, PackedWords::kSmallest}) {
        PackedMatrix packed(ctx, dtype, width, table.rows(), words);
        const PackRequest request[] = {{table.view(), SourceRows::kAlongN, &packed}};
        pack(ctx, request);
        packed_embedding(ctx, packed, indices, rows.view());
        CHECK(rows == expected);
      }
    }
  });
}
