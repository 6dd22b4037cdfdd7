#include "kernels/common/simd/elementary.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/cpu/isa_dispatch.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;

namespace {

/// Distance of a result from the exact value, in units of the result's last place.
double ulps(float actual, double exact) {
  const auto rounded = static_cast<float>(exact);
  const double unit = static_cast<double>(std::nextafter(std::abs(rounded), std::numeric_limits<float>::infinity()) -
                                          std::abs(rounded));
  return std::abs(static_cast<double>(actual) - exact) / unit;
}

template <class Exact>
double worst(const std::vector<float>& x, const std::vector<float>& y, const Exact& exact) {
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) largest = std::max(largest, ulps(y[i], exact(static_cast<double>(x[i]))));
  return largest;
}

std::vector<float> spread(float from, float to, int count) {
  std::vector<float> x;
  for (int i = 0; i < count; ++i)
    x.push_back(from + (to - from) * static_cast<float>(i) / static_cast<float>(count - 1));
  return x;
}

}  // namespace

TEST_CASE("exp, sigmoid and log are within 2 ulp on every path") {
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(name_of(isa));
    const auto exp_array = ZF_PICK_KERNEL(isa, exp_array);
    const auto sigmoid_array = ZF_PICK_KERNEL(isa, sigmoid_array);
    const auto log_array = ZF_PICK_KERNEL(isa, log_array);
    std::vector<float> x = spread(-87.0F, 88.5F, 100003), y(x.size());
    exp_array(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    CHECK(worst(x, y, [](double v) { return std::exp(v); }) < 2.0);
    x = spread(-30.0F, 30.0F, 100003);
    sigmoid_array(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    CHECK(worst(x, y, [](double v) { return 1 / (1 + std::exp(-v)); }) < 2.5);
    x = spread(0.01F, 5.0F, 50000);
    const std::vector<float> large = spread(5.0F, 3e38F, 50003);
    x.insert(x.end(), large.begin(), large.end());
    log_array(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    CHECK(worst(x, y, [](double v) { return std::log(v); }) < 2.0);
  }
}

TEST_CASE("exp and log at the edges: zero, infinity and NaN") {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::numeric_limits<float>::quiet_NaN();
  for (const CpuIsa isa : test::available_isas()) {
    CAPTURE(name_of(isa));
    const std::vector<float> x{0.0F, -0.0F, -kInf, -200.0F, kInf, 89.5F, kNaN, 88.72F, -87.3F, -103.0F};
    std::vector<float> y(x.size());
    ZF_PICK_KERNEL(isa, exp_array)(x.data(), y.data(), static_cast<std::int64_t>(x.size()));
    CHECK(y[0] == 1.0F);
    CHECK(y[1] == 1.0F);
    CHECK(y[2] == 0.0F);
    CHECK(y[3] == 0.0F);
    CHECK(y[4] == kInf);
    CHECK(y[5] == kInf);
    CHECK(std::isnan(y[6]));
    CHECK(std::isfinite(y[7]));
    CHECK(y[8] > 0.0F);
    CHECK(y[9] < 1e-44F);
    const std::vector<float> z{1.0F, kInf, kNaN};
    ZF_PICK_KERNEL(isa, log_array)(z.data(), y.data(), 3);
    CHECK(y[0] == 0.0F);
    CHECK(y[1] == kInf);
    CHECK(std::isnan(y[2]));
  }
}
