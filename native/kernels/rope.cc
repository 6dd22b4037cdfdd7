#include "kernels/rope.h"

#include <bit>

#include "core/error.h"
#include "kernels/cpu/launch.h"

namespace zerofleet {
namespace {

constexpr double kLn2 = 0.693147180559945309417;

/// e^x for |x| < 700: x = n ln 2 + r, Taylor series of e^r.
double exact_exp(double x) {
  const auto n = static_cast<std::int64_t>(x / kLn2 + (x < 0 ? -0.5 : 0.5));
  const double r = x - static_cast<double>(n) * kLn2;
  double term = 1, sum = 1;
  for (int i = 1; i <= 20; ++i) sum += term *= r / i;
  return sum * std::bit_cast<double>((n + 1023) << 52);
}

/// ln x for normal x > 0: x = 2^k m, ln m = 2 artanh((m − 1) / (m + 1)).
double exact_log(double x) {
  const auto bits = std::bit_cast<std::int64_t>(x);
  std::int64_t k = (bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (m > 1.4142135623730951) {
    m /= 2;
    ++k;
  }
  const double s = (m - 1) / (m + 1);
  double power = s, sum = 0;
  for (int i = 1; i < 40; i += 2) {
    sum += power / i;
    power *= s * s;
  }
  return static_cast<double>(k) * kLn2 + 2 * sum;
}

struct CosSin {
  double cosine, sine;
};

/// Angle in [0, 2^24): reduced by multiples of π/2 in three parts, then Taylor series.
CosSin cos_sin(double angle) {
  constexpr double kHalfPi1 = 1.57079632673412561417, kHalfPi2 = 6.07710050630396597660e-11,
                   kHalfPi3 = 2.02226624879595063154e-21;
  const auto quadrant = static_cast<std::int64_t>(angle / 1.57079632679489661923 + 0.5);
  const auto q = static_cast<double>(quadrant);
  const double r = ((angle - q * kHalfPi1) - q * kHalfPi2) - q * kHalfPi3;
  double cosine = 1, sine = r, cos_term = 1, sin_term = r;
  for (int i = 1; i <= 10; ++i) {
    cosine += cos_term *= -r * r / ((2 * i - 1) * (2 * i));
    sine += sin_term *= -r * r / ((2 * i) * (2 * i + 1));
  }
  switch (quadrant & 3) {
    case 0: return {cosine, sine};
    case 1: return {-sine, cosine};
    case 2: return {-cosine, -sine};
    default: return {sine, -cosine};
  }
}

}  // namespace

RopeTable::RopeTable(const Context& ctx, std::int64_t num_positions, std::int64_t head_dim, double theta)
    : num_positions_(num_positions), head_dim_(head_dim) {
  require(num_positions >= 1 && head_dim >= 2 && head_dim % 2 == 0 && theta > 1, "invalid_argument",
          "rope: needs positions, an even head_dim and theta above 1");
  const std::int64_t half = head_dim / 2;
  cosine_ = Buffer(ctx.device, static_cast<std::size_t>(num_positions * half) * sizeof(float));
  sine_ = Buffer(ctx.device, static_cast<std::size_t>(num_positions * half) * sizeof(float));
  const double log_theta = exact_log(theta);
  for (std::int64_t i = 0; i < half; ++i) {
    const auto exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const float frequency = 1.0F / static_cast<float>(exact_exp(static_cast<double>(exponent) * log_theta));
    for (std::int64_t position = 0; position < num_positions; ++position) {
      const float angle = static_cast<float>(position) * frequency;
      const CosSin both = cos_sin(static_cast<double>(angle));
      cosine_.as<float>()[static_cast<std::size_t>(position * half + i)] = static_cast<float>(both.cosine);
      sine_.as<float>()[static_cast<std::size_t>(position * half + i)] = static_cast<float>(both.sine);
    }
  }
}

void rope(const Context& ctx, const Rope& args) {
  require(args.table != nullptr && args.x.cols == args.num_heads * args.table->head_dim() &&
              args.sequence_length >= 1 && args.sequence_length <= args.table->num_positions(),
          "invalid_argument", "rope: heads and positions do not fit the table");
  switch (ctx.device.kind) {
    case DeviceKind::kCpu: return cpu::rope(ctx, args);
    case DeviceKind::kCuda: break;
  }
  throw Error("device_unavailable", "no rope for " + to_string(ctx.device) + " in this build");
}

}  // namespace zerofleet
