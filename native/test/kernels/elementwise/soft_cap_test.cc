#include "kernels/elementwise/soft_cap.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "test/kernels/every_path.h"

using namespace zerofleet;
using namespace zerofleet::test;

DEVICE_TEST_CASE("soft_cap is accurate for each element, also close to zero, and keeps what is not finite") {
  on_every_device([](const Context& ctx, DType dtype) {
    constexpr double kCap = 30;
    constexpr float kInfinity = std::numeric_limits<float>::infinity();
    const float ends[] = {0, -0.0F, 1e-6F, -1e-6F, 18.74F, 18.76F, -18.76F, 450, 1e30F, kInfinity, -kInfinity, NAN};
    std::mt19937 random(83);
    HostMatrix x = HostMatrix::random(dtype, 40, 53, random, 2, 20.0F), y(dtype, 40, 53, 1);
    for (std::int64_t i = 0; i < 12; ++i) x.set(7, i, ends[i]);
    soft_cap(ctx, kCap, x.view(), y.view());
    synchronize(ctx);
    const double most = dtype == DType::kF32 ? 5e-7 : dtype == DType::kBF16 ? 0.004 : 0.0006;
    for (std::int64_t i = 0; i < 40; ++i) {
      for (std::int64_t j = 0; j < 53; ++j) {
        const double value = x.at(i, j), expected = kCap * std::tanh(value / kCap);
        CAPTURE(value);
        if (std::isnan(value))
          REQUIRE(std::isnan(y.at(i, j)));
        else
          REQUIRE(std::abs(y.at(i, j) - expected) <= most * std::abs(expected) + (dtype == DType::kF16 ? 6e-8 : 0));
      }
    }
    soft_cap(ctx, kCap, x.view(), x.view());
    synchronize(ctx);
    CHECK(std::isnan(x.at(7, 11)));
    x.set(7, 11, 0);
    y.set(7, 11, 0);
    CHECK(table_of(x) == table_of(y));
    CHECK_THROWS_AS(soft_cap(ctx, kCap, x.view(), HostMatrix(dtype, 40, 52, 1).view()), Error);
    CHECK_THROWS_AS(soft_cap(ctx, 0, x.view(), y.view()), Error);
  });
}
