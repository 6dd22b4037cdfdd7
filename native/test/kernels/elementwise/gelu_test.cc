#include "kernels/elementwise/gelu.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/kernels/elementwise/gelu_in_float64.h"
#include "test/kernels/every_path.h"

// The forward against float64; the backward against central differences of the float64 forward.
using namespace zerofleet;
using namespace zerofleet::test;

namespace {

Table gelu_rows(GeluKind kind, const Table& x) {
  Table y = x;
  for (auto& row : y) {
    for (double& value : row) value = gelu_of(kind, value);
  }
  return y;
}

}  // namespace

DEVICE_TEST_CASE("gelu and its backward, exact and by tanh") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const GeluKind kind : kGeluKinds) {
      std::mt19937 random(71);
      HostMatrix x = HostMatrix::random(dtype, 66, 37, random, 2, 2.0F), y(dtype, 66, 37, 1);
      HostMatrix dy = HostMatrix::random(dtype, 66, 37, random, 3), dx(dtype, 66, 37);
      gelu(ctx, kind, x.view(), y.view());
      gelu_backward(ctx, kind, x.view(), dy.view(), dx.view());
      synchronize(ctx);
      CHECK(relative_error(y, gelu_rows(kind, table_of(x))) < tolerance(dtype));
      const Table above = table_of(dy);
      const Table expected =
          numeric_gradient_of_rows([&](const Table& at) { return gelu_rows(kind, at); }, table_of(x), above);
      CHECK(relative_error(dx, expected) < tolerance(dtype));

      gelu_backward(ctx, kind, x.view(), dy.view(), dy.view());
      gelu(ctx, kind, x.view(), x.view());
      synchronize(ctx);
      for (std::int64_t i = 0; i < 66; ++i) {
        for (std::int64_t j = 0; j < 37; ++j) REQUIRE(dy.at(i, j) == dx.at(i, j));
      }
      for (std::int64_t i = 0; i < 66; ++i) {
        for (std::int64_t j = 0; j < 37; ++j) REQUIRE(x.at(i, j) == y.at(i, j));
      }
    }
  });
}

DEVICE_TEST_CASE("gelu is accurate for each element, also where it is close to zero") {
  on_every_device([](const Context& ctx, DType dtype) {
    if (dtype != DType::kF32) return;
    constexpr std::int64_t kCount = 9001;
    HostMatrix x(DType::kF32, 1, kCount), y(DType::kF32, 1, kCount);
    for (std::int64_t j = 0; j < kCount; ++j) x.set(0, j, -5.0F + 10.0F * static_cast<float>(j) / (kCount - 1));
    for (const GeluKind kind : kGeluKinds) {
      gelu(ctx, kind, x.view(), y.view());
      synchronize(ctx);
      double worst = 0;
      for (std::int64_t j = 0; j < kCount; ++j) {
        const double exact = gelu_of(kind, x.at(0, j));
        // For x below 0, tanh in float64 leaves only 1e-16 of 1 to compare with.
        worst = std::max(worst, std::abs(y.at(0, j) - exact) / (std::abs(exact) + 1e-10));
      }
      CHECK(worst < 4e-6);
    }
  });
}

DEVICE_TEST_CASE("gelu far from zero is 0 or x, and values that are not finite stay so") {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  on_every_device([&](const Context& ctx, DType dtype) {
    for (const GeluKind kind : kGeluKinds) {
      HostMatrix x(dtype, 1, 6), one(dtype, 1, 6), y(dtype, 1, 6), dx(dtype, 1, 6);
      const float values[] = {60000.0F, -60000.0F, 20.0F, -20.0F, kInf, kNaN};
      for (std::int64_t j = 0; j < 6; ++j) {
        x.set(0, j, values[j]);
        one.set(0, j, 1.0F);
      }
      gelu(ctx, kind, x.view(), y.view());
      gelu_backward(ctx, kind, x.view(), one.view(), dx.view());
      synchronize(ctx);
      for (const std::int64_t j : {0, 2}) {
        CHECK(y.at(0, j) == x.at(0, j));
        CHECK(y.at(0, j + 1) == 0.0);
        CHECK(dx.at(0, j) == 1.0);
        CHECK(dx.at(0, j + 1) == 0.0);
      }
      CHECK(!std::isfinite(y.at(0, 4)));
      CHECK(std::isnan(y.at(0, 5)));
      CHECK(std::isnan(dx.at(0, 5)));
    }
  });
}

TEST_CASE("gelu: no thread count changes a bit, and matrices that do not fit are refused") {
  on_every_path([](const Context& ctx, DType dtype) {
    std::mt19937 random(73);
    HostMatrix x = HostMatrix::random(dtype, 200, 19, random), expected(dtype, 200, 19);
    gelu(ctx, GeluKind::kExact, x.view(), expected.view());
    for (const int threads : {1, 3}) {
      Machine machine(ctx.cpu_isa, threads);
      HostMatrix y(dtype, 200, 19);
      gelu(machine.ctx, GeluKind::kExact, x.view(), y.view());
      CHECK(y == expected);
    }
    HostMatrix wide(dtype, 200, 20);
    CHECK_THROWS_AS(gelu(ctx, GeluKind::kExact, x.view(), wide.view()), Error);
    CHECK_THROWS_AS(gelu_backward(ctx, GeluKind::kTanh, x.view(), wide.view(), expected.view()), Error);
  });
}
