#include "core/portable_math.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

namespace zerofleet::portable {
namespace {

// ln 2 and π/2 in two parts. The high part of ln 2 has 32 bits, so that its product with an exponent is exact.
constexpr double kLn2High = 0x1.62e42feep-1, kLn2Low = 0x1.a39ef35793c76p-33;
constexpr double kHalfPiHigh = 0x1.921fb54442d18p0, kHalfPiLow = 0x1.1a62633145c07p-54;

constexpr auto kInverseFactorial = [] {
  std::array<double, 23> values{1};
  double factorial = 1;  // up to 22! they are exact
  for (std::size_t k = 1; k < values.size(); ++k) values[k] = 1 / (factorial *= static_cast<double>(k));
  return values;
}();

/// 1/first! + z/(first + step)! + z²/(first + 2·step)! + …, up to 1/last!
double inverse_factorials(double z, int first, int last, int step) {
  double sum = 0;
  for (int k = last; k >= first; k -= step) sum = sum * z + kInverseFactorial[static_cast<std::size_t>(k)];
  return sum;
}

/// high + low, where low is the rounding error of high.
struct Twofold {
  double high, low;
};

/// a + b without error (Knuth).
Twofold exact_sum(double a, double b) {
  const double sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}

/// a · b without error, for |a|, |b| < 2^996 and a product above 2^-960 (Dekker): halves of 26 bits have exact
/// products.
Twofold exact_product(double a, double b) {
  constexpr double kSplit = 0x1p27 + 1;
  const double a_high = a * kSplit - (a * kSplit - a), a_low = a - a_high;
  const double b_high = b * kSplit - (b * kSplit - b), b_low = b - b_high;
  const double product = a * b;
  return {product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

Twofold product(Twofold a, Twofold b) {
  const Twofold high = exact_product(a.high, b.high);
  return exact_sum(high.high, high.low + (a.high * b.low + a.low * b.high));
}

/// Sine and cosine of `quarters` quarter turns and a rest within π/4, by the Taylor series of the rest.
SinCos sin_cos_of_rest(std::int64_t quarters, Twofold rest) {
  const double r = rest.high, z = -r * r;
  const double sin = r + (rest.low * (1 + 0.5 * z) + r * z * inverse_factorials(z, 3, 21, 2));
  const Twofold first = exact_sum(1, 0.5 * z);
  const double cos = first.high + (first.low + (z * z * inverse_factorials(z, 4, 20, 2) - r * rest.low));
  switch (quarters & 3) {
    case 0:
      return {sin, cos};
    case 1:
      return {cos, -sin};
    case 2:
      return {-sin, -cos};
    default:
      return {-cos, sin};
  }
}

}  // namespace

// x = n ln 2 + r; e^x = 2^n e^r by the Taylor series of e^r. As |r| ≤ ln 2 / 2, its rest after 16 terms is below 2^-62.
double exp(double x) {
  if (std::isnan(x)) return x;
  if (x < -746) return 0;
  if (x > 710) return std::numeric_limits<double>::infinity();
  const double n = std::floor(x / kLn2High + 0.5), high = x - n * kLn2High, low = -n * kLn2Low;
  const double r = high + low, rest = (high - r) + low;
  return std::ldexp(1 + (r + (rest + r * r * inverse_factorials(r, 2, 15, 1))), static_cast<int>(n));
}

// x = 2^k (1 + f) with 1 + f in [√½, √2). Let s = f / (2 + f) and series = 2/3 s² + 2/5 s⁴ + …; then ln(1 + f) = 2
// artanh(s) = f − f²/2 + s (f²/2 + series). Here f is exact, and the rest is small beside it (as in fdlibm's e_log.c).
double log(double x) {
  int exponent = 0;
  double mantissa = std::frexp(x, &exponent);
  if (mantissa < 0.70710678118654752) {
    mantissa *= 2;
    --exponent;
  }
  const double f = mantissa - 1, s = f / (2 + f), s2 = s * s, half_square = 0.5 * f * f, k = exponent;
  double series = 0;
  for (int i = 23; i >= 3; i -= 2) series = (series + 2.0 / i) * s2;
  return k * kLn2High - ((half_square - (s * (half_square + series) + k * kLn2Low)) - f);
}

double power(double base, std::int64_t exponent) {
  Twofold result{1, 0};
  for (Twofold square{base, 0}; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = product(result, square);
    square = product(square, square);
  }
  return result.high;
}

SinCos sin_cos(double radians) {
  const double quarters = std::floor(radians / kHalfPiHigh + 0.5);
  const Twofold whole = exact_product(quarters, kHalfPiHigh);
  const Twofold rest = exact_sum(radians - whole.high, -(whole.low + quarters * kHalfPiLow));
  return sin_cos_of_rest(static_cast<std::int64_t>(quarters), rest);
}

SinCos sin_cos_of_turns(double turns) {
  const double quarters = std::floor(turns * 4 + 0.5), fraction = turns * 4 - quarters;
  const Twofold rest = exact_product(fraction, kHalfPiHigh);
  return sin_cos_of_rest(static_cast<std::int64_t>(quarters), {rest.high, rest.low + fraction * kHalfPiLow});
}

}  // namespace zerofleet::portable
