#include "kernels/elementwise/dropout.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "core/error.h"
#include "test/kernels/elementwise/dropout_mask.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr DropoutKey kKey{42, 7, 3, 11};

HostMatrix ones(DType dtype, std::int64_t rows, std::int64_t cols) {
  HostMatrix x(dtype, rows, cols, 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < cols; ++j) x.set(i, j, 1.0F);
  }
  return x;
}

std::vector<bool> mask(const Context& ctx, const DropoutKey& key, double p) {
  HostMatrix x = ones(DType::kF32, 1, 4096), y(DType::kF32, 1, 4096);
  dropout(ctx, key, p, x.view(), y.view());
  std::vector<bool> result;
  for (std::int64_t j = 0; j < 4096; ++j) result.push_back(y.at(0, j) != 0.0);
  return result;
}

}  // namespace

DEVICE_TEST_CASE("dropout scales what it keeps; an element's mask depends on its index alone, on every path") {
  on_every_device([](const Context& ctx, DType dtype) {
    const DropoutRule rule = dropout_rule(kKey, 0.25);
    for (const auto& [rows, cols] :
         {std::pair<std::int64_t, std::int64_t>{70, 37}, {3, 64}, {2, 200}, {130, 1}, {5, 84}}) {
      std::mt19937 random(103);
      const std::int64_t gap = cols % 4 == 0 ? 4 : 1;
      HostMatrix x = HostMatrix::random(dtype, rows, cols, random, 2 * gap), y(dtype, rows, cols, gap), overwritten = x;
      dropout(ctx, kKey, 0.25, x.view(), y.view());
      dropout(ctx, kKey, 0.25, overwritten.view(), overwritten.view());
      synchronize(ctx);
      HostMatrix expected(dtype, rows, cols, gap);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          const float factor = kept(rule, static_cast<std::uint64_t>(i * cols + j)) ? 1.0F / 0.75F : 0.0F;
          expected.set(i, j, static_cast<float>(x.at(i, j)) * factor);
        }
      }
      CHECK(y == expected);
      CHECK(table_of(overwritten) == table_of(y));
      if (rows > 64) {
        HostMatrix in_parts(dtype, rows, cols, gap);
        DropoutKey key = kKey;
        dropout(ctx, key, 0.25, x.view().first_rows(64), in_parts.view().first_rows(64));
        key.first_row = 64;
        dropout(ctx, key, 0.25, x.view().row_slice(64, rows - 64), in_parts.view().row_slice(64, rows - 64));
        synchronize(ctx);
        CHECK(in_parts == expected);
      }
      HostMatrix sums = x;
      add_dropout(ctx, kKey, 0.25, x.view(), sums.view());
      synchronize(ctx);
      for (std::int64_t i = 0; i < rows; ++i) {
        for (std::int64_t j = 0; j < cols; ++j) {
          const float factor = kept(rule, static_cast<std::uint64_t>(i * cols + j)) ? 1.0F / 0.75F : 0.0F;
          HostMatrix sum(dtype, 1, 1);
          const float value = static_cast<float>(x.at(i, j));
          sum.set(0, 0, value + value * factor);
          REQUIRE(sums.at(i, j) == sum.at(0, 0));
        }
      }
      if (ctx.device.kind != DeviceKind::kCpu) continue;
      for (const int threads : {1, 3}) {
        Machine machine(ctx.cpu_isa, threads);
        HostMatrix in_place = x;
        dropout(machine.ctx, kKey, 0.25, in_place.view(), in_place.view());
        for (std::int64_t i = 0; i < rows; ++i) {
          for (std::int64_t j = 0; j < cols; ++j) REQUIRE(in_place.at(i, j) == y.at(i, j));
        }
      }
    }
  });
}

TEST_CASE("dropout drops the requested share, none for 0") {
  Machine machine(best_cpu_isa(), 2);
  constexpr std::int64_t kRows = 400, kCols = 500;
  HostMatrix x = ones(DType::kF32, kRows, kCols), y(DType::kF32, kRows, kCols);
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    dropout(machine.ctx, kKey, p, x.view(), y.view());
    double dropped = 0;
    for (std::int64_t i = 0; i < kRows; ++i) {
      for (std::int64_t j = 0; j < kCols; ++j) dropped += y.at(i, j) == 0.0 ? 1 : 0;
    }
    const double count = kRows * kCols, deviation = std::sqrt(count * p * (1 - p));
    CHECK(std::abs(dropped - p * count) <= 4 * deviation);
  }
}

TEST_CASE("dropout: seed, step, leaf and site each give masks of their own") {
  Machine machine(best_cpu_isa(), 1);
  const std::vector<bool> first = mask(machine.ctx, kKey, 0.5);
  CHECK(mask(machine.ctx, kKey, 0.5) == first);
  for (const DropoutKey& other : {DropoutKey{43, 7, 3, 11},
                                  {42, 8, 3, 11},
                                  {42, 7, 4, 11},
                                  {42, 7, 3, 12},
                                  {42, 3, 7, 11},
                                  {42 + (1ULL << 40), 7, 3, 11},
                                  {42, 7 + (1ULL << 40), 3, 11}}) {
    const std::vector<bool> second = mask(machine.ctx, other, 0.5);
    int same = 0;
    for (std::size_t i = 0; i < first.size(); ++i) same += first[i] == second[i] ? 1 : 0;
    CHECK(std::abs(same - 2048) < 160);  // five standard deviations of a coin
  }
}

DEVICE_TEST_CASE("dropout hides no NaN, and refuses invalid arguments") {
  on_every_device([](const Context& ctx, DType dtype) {
    HostMatrix x(dtype, 1, 100), wide(dtype, 1, 101);
    for (std::int64_t j = 0; j < 100; ++j) x.set(0, j, std::nanf(""));
    dropout(ctx, kKey, 0.5, x.view(), x.view());
    synchronize(ctx);
    for (std::int64_t j = 0; j < 100; ++j) CHECK(std::isnan(x.at(0, j)));
    for (const double p : {1.0, -0.1, 2.0, std::nan("")}) {
      CHECK_THROWS_AS(dropout(ctx, kKey, p, x.view(), x.view()), Error);
    }
    CHECK_THROWS_AS(dropout(ctx, kKey, 0.5, x.view(), wide.view()), Error);
  });
}

DEVICE_TEST_CASE("a scale multiplies every element, in place too") {
  on_every_device([](const Context& ctx, DType dtype) {
    std::mt19937 random(107);
    HostMatrix x = HostMatrix::random(dtype, 70, 37, random, 2), y(dtype, 70, 37, 1), expected = y;
    scale(ctx, 0.22, x.view(), y.view());
    for (std::int64_t i = 0; i < 70; ++i) {
      for (std::int64_t j = 0; j < 37; ++j) expected.set(i, j, static_cast<float>(x.at(i, j)) * 0.22F);
    }
    scale(ctx, 0.22, x.view(), x.view());
    synchronize(ctx);
    CHECK(y == expected);
    CHECK(table_of(x) == table_of(expected));
    CHECK_THROWS_AS(scale(ctx, 2, x.view(), HostMatrix(dtype, 70, 36, 1).view()), Error);
  });
}

DEVICE_TEST_CASE("an addition rounds each sum once") {
  on_every_device([](const Context& ctx, DType dtype) {
    std::mt19937 random(109);
    HostMatrix x = HostMatrix::random(dtype, 70, 37, random, 2), y = HostMatrix::random(dtype, 70, 37, random, 1);
    HostMatrix expected(dtype, 70, 37, 1);
    for (std::int64_t i = 0; i < 70; ++i) {
      for (std::int64_t j = 0; j < 37; ++j)
        expected.set(i, j, static_cast<float>(y.at(i, j)) + static_cast<float>(x.at(i, j)));
    }
    add(ctx, x.view(), y.view());
    synchronize(ctx);
    CHECK(table_of(y) == table_of(expected));
    CHECK_THROWS_AS(add(ctx, x.view(), HostMatrix(dtype, 70, 36, 1).view()), Error);
  });
}
