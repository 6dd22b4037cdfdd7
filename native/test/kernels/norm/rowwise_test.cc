#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <numbers>
#include <vector>

#include "core/error.h"
#include "kernels/attention/rope.h"
#include "kernels/elementwise/glu.h"
#include "kernels/norm/rmsnorm.h"
#include "test/kernels/every_path.h"

// Forward kernels against float64; backward kernels against central differences of the float64 forward.
using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr double kRmsNormEps = 1e-5;

Table norm_rows(const Table& x, const Table& weight, double offset) {
  Table y = x;
  for (auto& row : y) {
    double squares = 0;
    for (const double value : row) squares += value * value;
    const double rstd = 1 / std::sqrt(squares / static_cast<double>(row.size()) + kRmsNormEps);
    for (std::size_t j = 0; j < row.size(); ++j) row[j] *= rstd * (offset + weight[0][j]);
  }
  return y;
}

double activated(GluKind kind, double gate) {
  if (kind == GluKind::kSilu) return gate / (1 + std::exp(-gate));
  return gate / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (gate + 0.044715 * gate * gate * gate)));
}

Table glu_rows(GluKind kind, const Table& gate_up) {
  Table act;
  for (const auto& row : gate_up) {
    const std::size_t cols = row.size() / 2;
    std::vector<double> out(cols);
    for (std::size_t j = 0; j < cols; ++j) out[j] = activated(kind, row[j]) * row[cols + j];
    act.push_back(out);
  }
  return act;
}

Table rotated_rows(const Table& before, std::size_t dim, std::size_t sequence_length, double theta, bool interleaved) {
  Table rotated = before;
  for (std::size_t row = 0; row < before.size(); ++row) {
    for (std::size_t head = 0; head < before[row].size(); head += dim) {
      for (std::size_t i = 0; i < dim / 2; ++i) {
        const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(dim);
        const double angle = static_cast<double>(row % sequence_length) * std::pow(theta, exponent);
        const std::size_t first = head + (interleaved ? 2 * i : i), second = first + (interleaved ? 1 : dim / 2);
        rotated[row][first] = before[row][first] * std::cos(angle) - before[row][second] * std::sin(angle);
        rotated[row][second] = before[row][second] * std::cos(angle) + before[row][first] * std::sin(angle);
      }
    }
  }
  return rotated;
}

}  // namespace

DEVICE_TEST_CASE("rmsnorm and its backward") {
  on_every_device([](const Context& ctx, DType dtype) {
    // The last ones are rows for a whole block of threads.
    for (const auto& [rows, cols] :
         {std::pair<std::int64_t, std::int64_t>{67, 21}, {3, 64}, {130, 5}, {2, 1056}, {1, 1033}}) {
      const double offset = rows % 2 == 0 ? 1 : 0;
      std::mt19937 random(11);
      HostMatrix x = HostMatrix::random(dtype, rows, cols, random, 3),
                 weight = HostMatrix::random(dtype, 1, cols, random);
      HostMatrix delta = HostMatrix::random(dtype, rows, cols, random, 1), sum(dtype, rows, cols),
                 y(dtype, rows, cols, 2);
      SharedValues<float> rstd(static_cast<std::size_t>(rows)), dweight(static_cast<std::size_t>(cols));
      rmsnorm(ctx, {x.view(), delta.view(), sum.view(), weight.view().data, kRmsNormEps, y.view(), rstd, offset});
      synchronize(ctx);
      CHECK(relative_error(sum, added(table_of(x), table_of(delta))) < tolerance(dtype));
      CHECK(relative_error(y, norm_rows(table_of(sum), table_of(weight), offset)) < tolerance(dtype));

      HostMatrix dy = HostMatrix::random(dtype, rows, cols, random), dx(dtype, rows, cols);
      rmsnorm_backward(ctx,
                       {dy.view(), sum.view(), weight.view().data, rstd, delta.view(), dx.view(), dweight, offset});
      synchronize(ctx);
      const Table from_above = table_of(dy), w = table_of(weight), s = table_of(sum);
      const Table expected =
          numeric_gradient_of_rows([&](const Table& at) { return norm_rows(at, w, offset); }, s, from_above);
      CHECK(relative_error(dx, added(expected, table_of(delta))) < tolerance(dtype));
      HostMatrix dw(DType::kF32, 1, cols);
      for (std::int64_t j = 0; j < cols; ++j) dw.set(0, j, dweight[static_cast<std::size_t>(j)]);
      CHECK(relative_error(
                dw, numeric_gradient([&](const Table& at) { return dot(norm_rows(s, at, offset), from_above); }, w)) <
            2e-6);
    }
  });
}

TEST_CASE("rmsnorm_backward may write over the residual's gradient, and no thread count changes a bit") {
  on_every_path([](const Context& ctx, DType dtype) {
    std::mt19937 random(5);
    HostMatrix x = HostMatrix::random(dtype, 300, 40, random), dy = HostMatrix::random(dtype, 300, 40, random);
    HostMatrix weight = HostMatrix::random(dtype, 1, 40, random);
    std::vector<std::vector<float>> dweights;
    std::vector<HostMatrix> results;
    for (const int threads : {1, 2, 3}) {
      Machine machine(ctx.cpu_isa, threads);
      HostMatrix y(dtype, 300, 40), residual = dy, apart(dtype, 300, 40);
      std::vector<float> rstd(300), dweight(40);
      const void* w = weight.view().data;
      rmsnorm(machine.ctx, {x.view(), {}, {}, w, kRmsNormEps, y.view(), rstd});
      rmsnorm_backward(machine.ctx, {dy.view(), x.view(), w, rstd, residual.view(), apart.view(), dweight});
      rmsnorm_backward(machine.ctx, {dy.view(), x.view(), w, rstd, residual.view(), residual.view(), dweight});
      CHECK(residual == apart);
      results.push_back(residual);
      dweights.push_back(dweight);
    }
    CHECK(results[1] == results[0]);
    CHECK(results[2] == results[0]);
    CHECK(dweights[1] == dweights[0]);
    CHECK(dweights[2] == dweights[0]);
  });
}

DEVICE_TEST_CASE("gated linear units and their backwards") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const auto& [rows, cols, gap] : {std::array<std::int64_t, 3>{66, 19, 1}, {5, 64, 0}, {3, 20, 4}}) {
      for (const GluKind kind : {GluKind::kSilu, GluKind::kGeluTanh}) {
        std::mt19937 random(13);
        HostMatrix gate_up = HostMatrix::random(dtype, rows, 2 * cols, random, 2 * gap, 2.0F),
                   act(dtype, rows, cols, gap);
        HostMatrix dact = HostMatrix::random(dtype, rows, cols, random), dgate_up(dtype, rows, 2 * cols);
        glu(ctx, kind, gate_up.view(), act.view());
        glu_backward(ctx, kind, gate_up.view(), dact.view(), dgate_up.view());
        synchronize(ctx);
        CHECK(relative_error(act, glu_rows(kind, table_of(gate_up))) < tolerance(dtype));
        const Table from_above = table_of(dact);
        const Table expected = numeric_gradient_of_rows([&](const Table& at) { return glu_rows(kind, at); },
                                                        table_of(gate_up), from_above);
        CHECK(relative_error(dgate_up, expected) < tolerance(dtype));
        CHECK_THROWS_AS(glu(ctx, kind, gate_up.view(), gate_up.view()), Error);
      }
    }
  });
}

DEVICE_TEST_CASE("rope rotates pairs, of halves or of neighbours, by position, and back") {
  on_every_device([](const Context& ctx, DType dtype) {
    constexpr std::int64_t kLength = 7;
    for (const auto& [heads, dim, gap] : {std::array<std::int64_t, 3>{3, 10, 4}, {9, 32, 8}, {1, 24, 0}}) {
      for (const bool interleaved : {false, true}) {
        const RopeTable table(ctx, 16, dim, 500.0);
        std::mt19937 random(17);
        HostMatrix x = HostMatrix::random(dtype, 3 * kLength, heads * dim, random, gap);
        const Table before = table_of(x);
        const Table expected = rotated_rows(before, static_cast<std::size_t>(dim), kLength, 500.0, interleaved);
        rope(ctx, {x.view(), &table, heads, kLength, false, {}, interleaved});
        synchronize(ctx);
        CHECK(relative_error(x, expected) < tolerance(dtype));
        rope(ctx, {x.view(), &table, heads, kLength, true, {}, interleaved});
        synchronize(ctx);
        CHECK(relative_error(x, before) < 2 * tolerance(dtype));
        CHECK_THROWS_AS(rope(ctx, {x.view(), &table, heads, 17}), Error);
      }
    }
  });
}

DEVICE_TEST_CASE("rope rotates the first elements of each head only") {
  on_every_device([](const Context& ctx, DType dtype) {
    constexpr std::int64_t kLength = 7;
    // Heads of 12 elements of which 6 are rotated, and of 64 of which 48 are.
    for (const auto& [heads, dim, rotated] : {std::array<std::int64_t, 3>{3, 12, 6}, {5, 64, 48}}) {
      for (const bool interleaved : {false, true}) {
        const RopeTable table(ctx, 16, rotated, 500.0);
        std::mt19937 random(17);
        HostMatrix x = HostMatrix::random(dtype, 2 * kLength, heads * dim, random, 8);
        const Table before = table_of(x);
        HostMatrix parts(dtype, x.rows(), heads * rotated);  // the rotated elements alone
        for (std::int64_t row = 0; row < x.rows(); ++row) {
          for (std::int64_t j = 0; j < heads * rotated; ++j)
            parts.set(row, j, static_cast<float>(x.at(row, j / rotated * dim + j % rotated)));
        }
        rope(ctx, {x.view(), &table, heads, kLength, false, {}, interleaved});
        rope(ctx, {parts.view(), &table, heads, kLength, false, {}, interleaved});
        synchronize(ctx);
        for (std::int64_t row = 0; row < x.rows(); ++row) {
          for (std::int64_t j = 0; j < heads * dim; ++j) {
            const bool is_kept = j % dim >= rotated;
            const double expected = is_kept ? before[static_cast<std::size_t>(row)][static_cast<std::size_t>(j)]
                                            : parts.at(row, j / dim * rotated + j % dim);
            REQUIRE(x.at(row, j) == expected);
          }
        }
      }
    }
  });
}

TEST_CASE("the table of rotary angles equals correctly rounded double arithmetic") {
  Machine machine(best_cpu_isa(), 1);
  for (const double theta : {10000.0, 500000.0, 1e6}) {
    const RopeTable table(machine.ctx, 8192, 64, theta);
    for (std::int64_t position = 0; position < 8192; position += 13) {
      for (std::int64_t i = 0; i < 32; ++i) {
        const float frequency = 1.0F / static_cast<float>(std::pow(theta, static_cast<double>(2 * i) / 64));
        const double angle = static_cast<double>(static_cast<float>(position) * frequency);
        const auto at = static_cast<std::size_t>(position * 32 + i);
        REQUIRE(static_cast<double>(table.cosine()[at]) == doctest::Approx(std::cos(angle)).epsilon(1e-7));
        REQUIRE(static_cast<double>(table.sine()[at]) == doctest::Approx(std::sin(angle)).epsilon(1e-7));
      }
    }
  }
}
