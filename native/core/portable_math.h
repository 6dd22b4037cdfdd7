#pragma once

#include <cstdint>

// Elementary functions in double precision, for whatever reaches a job's state. Those of the C library have variants by
// processor (with and without fused multiplications) and change with its version, in last bits. These consist of the
// operations that IEEE 754 defines to the bit (+, −, ·, /, and std::floor, frexp, ldexp, which are exact), so they
// return the same bits on every machine. So does std::sqrt. Errors are in units of the result's last place (ulp).
namespace zerofleet::portable {

/// e^x within 1 ulp; 0 below and ∞ above the range of double precision. NaN stays NaN.
double exp(double x);

/// ln x within 1 ulp, for finite x > 0.
double log(double x);

/// base^exponent within 1 ulp, for base in [0, 1] and an exponent from 0 to 2^40; beyond, with an error of
/// exponent · 2^-102 of the result.
double power(double base, std::int64_t exponent);

struct SinCos {
  double sin, cos;
};

/// Sine and cosine of an angle in [0, 2^24) radians; each within 1 ulp, or 2^-80 where that is more.
SinCos sin_cos(double radians);

/// Sine and cosine of `turns` full turns, in [0, 2^50); each within 1 ulp. Multiples of a quarter turn are exact.
SinCos sin_cos_of_turns(double turns);

}  // namespace zerofleet::portable
