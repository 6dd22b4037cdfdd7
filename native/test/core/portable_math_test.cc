#include "core/portable_math.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/philox.h"
#include "test/sanitized.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

// At least 11 more bits than double, on the machines whose tests run.
static_assert(std::numeric_limits<long double>::digits >= 64);
constexpr long double kPi = 3.14159265358979323846264338327950288L;
constexpr std::uint32_t kNumSamples = 200'000;
constexpr std::uint32_t kNumMeasured = kSanitized ? 20'000 : kNumSamples;

/// Distance of a result from the exact value, in units of the result's last place.
double ulps(double actual, long double exact) {
  const double size = std::abs(static_cast<double>(exact));
  const double unit = std::nextafter(size, std::numeric_limits<double>::infinity()) - size;
  return static_cast<double>(std::abs(static_cast<long double>(actual) - exact) / static_cast<long double>(unit));
}

double uniform(std::uint32_t sample, double from, double to) {
  const auto bits = philox(3, {sample, 0, 0, 0});
  return from + (to - from) * (uniform_open(bits[0]) + uniform_open(bits[1]) * 0x1p-32);
}

/// The largest error of `actual` beside `exact` over random numbers of a range.
template <class Actual, class Exact>
double worst(double from, double to, const Actual& actual, const Exact& exact) {
  double largest = 0;
  for (std::uint32_t i = 0; i < kNumMeasured; ++i) {
    const double x = uniform(i, from, to);
    largest = std::max(largest, ulps(actual(x), exact(static_cast<long double>(x))));
  }
  return largest;
}

/// Every bit of a row of results, in their order.
class Bits {
 public:
  void add(double value) { sum_ = (sum_ ^ std::bit_cast<std::uint64_t>(value)) * 0x100000001b3; }
  std::uint64_t sum() const { return sum_; }

 private:
  std::uint64_t sum_ = 0xcbf29ce484222325;
};

template <class Function>
std::uint64_t bits_of(double from, double to, const Function& function) {
  Bits bits;
  for (std::uint32_t i = 0; i < kNumSamples; ++i) bits.add(function(uniform(i, from, to)));
  return bits.sum();
}

}  // namespace

TEST_CASE("exp, log, sine and cosine are within 1 ulp of the exact values") {
  const auto exact_exp = [](long double x) { return std::exp(x); };
  CHECK(worst(-1, 1, portable::exp, exact_exp) < 1);
  CHECK(worst(-700, 700, portable::exp, exact_exp) < 1);
  const auto exact_log = [](long double x) { return std::log(x); };
  CHECK(worst(0, 1, portable::log, exact_log) < 1);
  CHECK(worst(0.5, 2, portable::log, exact_log) < 1);
  CHECK(worst(1, 1e15, portable::log, exact_log) < 1);
  const auto sine = [](double x) { return portable::sin_cos(x).sin; };
  const auto cosine = [](double x) { return portable::sin_cos(x).cos; };
  for (const double largest : {1.0, 100.0, 0x1p24}) {
    CHECK(worst(0, largest, sine, [](long double x) { return std::sin(x); }) < 1);
    CHECK(worst(0, largest, cosine, [](long double x) { return std::cos(x); }) < 1);
  }
  const auto sine_of_turns = [](double x) { return portable::sin_cos_of_turns(x).sin; };
  const auto cosine_of_turns = [](double x) { return portable::sin_cos_of_turns(x).cos; };
  // Uses an angle up to a quarter turn, so that the rounding of 2π x is not seen in the result.
  CHECK(worst(0, 0.5, sine_of_turns, [](long double x) { return std::sin(2 * kPi * std::min(x, 0.5L - x)); }) < 1);
  CHECK(worst(0, 0.5, cosine_of_turns, [](long double x) { return std::sin(2 * kPi * (0.25L - x)); }) < 1);
}

TEST_CASE("powers are within 1 ulp of the exact values, also of many steps") {
  for (const double base : {0.8, 0.9, 0.95, 0.99, 0.999, 0.9999999}) {
    CAPTURE(base);
    double largest = 0;
    for (std::int64_t n = 1; n < 100'000; n += n < 1000 ? 1 : 997) {
      // The error of a logarithm to 64 bits, taken `n` times, would be seen.
      long double exact = 1, square = static_cast<long double>(base);
      for (std::int64_t left = n; left > 0; left >>= 1) {
        if ((left & 1) != 0) exact *= square;
        square *= square;
      }
      const double allowed = 1 + static_cast<double>(n) * 0x1p-10;  // of the reference
      if (exact > 1e-300L) largest = std::max(largest, ulps(portable::power(base, n), exact) / allowed);
    }
    CHECK(largest < 1);
  }
  CHECK(portable::power(0.5, 1000) == 0x1p-1000);
  CHECK(portable::power(0.75, 5) == 243.0 / 1024);
  CHECK(portable::power(0.9, 0) == 1);
  CHECK(portable::power(0, 3) == 0);
  CHECK(portable::power(0.9, std::int64_t{1} << 40) == 0);
  CHECK(portable::power(1, std::int64_t{1} << 40) == 1);
}

TEST_CASE("elementary functions at the edges") {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  CHECK(portable::exp(0) == 1);
  CHECK(portable::exp(-kInf) == 0);
  CHECK(portable::exp(-800) == 0);
  CHECK(portable::exp(-745) > 0);
  CHECK(portable::exp(709.7) < kInf);
  CHECK(portable::exp(709.8) == kInf);
  CHECK(portable::exp(kInf) == kInf);
  CHECK(std::isnan(portable::exp(std::nan(""))));
  CHECK(portable::log(1) == 0);
  CHECK(portable::log(std::numeric_limits<double>::denorm_min()) == doctest::Approx(-1074 * std::numbers::ln2));
  for (int quarters = 0; quarters < 9; ++quarters) {
    const portable::SinCos at = portable::sin_cos_of_turns(quarters / 4.0);
    CHECK(at.sin == (quarters % 2 == 0 ? 0 : quarters % 4 == 1 ? 1 : -1));
    CHECK(at.cos == (quarters % 2 == 1 ? 0 : quarters % 4 == 0 ? 1 : -1));
  }
  CHECK(portable::sin_cos(0).sin == 0);
  CHECK(portable::sin_cos(0).cos == 1);
}

TEST_CASE("elementary functions have the same bits on every machine and in every build") {
  CHECK(bits_of(-50, 50, portable::exp) == 18003228639564059194U);
  CHECK(bits_of(0, 100, portable::log) == 3732366566552035184U);
  CHECK(bits_of(0, 100'000, [](double x) { return portable::sin_cos(x).sin; }) == 4387987429297376415U);
  CHECK(bits_of(0, 1, [](double x) { return portable::sin_cos_of_turns(x).cos; }) == 12850183294602676477U);
  CHECK(bits_of(0, 1, [](double x) { return portable::power(x, 1000); }) == 11253315056328893498U);
}
