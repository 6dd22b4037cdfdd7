#pragma once

// Elementary functions on vectors, so that results depend on no C library. For SIMD sources only.

#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

/// x · 2^n for whole n in [-150, 128], x in [0.7, 1.5]; beyond the range of fp32 it is rounded to a subnormal, 0 or ∞.
ZF_INLINE vf scale_by_power_of_two(vf x, vf n) {
#if defined(__AVX512F__)
  // Uses the mask of all lanes, because the plain form reads an undefined value, which the compiler warns of.
  return _mm512_maskz_scalef_ps(0xffff, x, n);
#else
  // In two factors, so that neither leaves the range of fp32.
  const vi whole = __builtin_convertvector(n, vi);
  const vi half = whole >> 1;
  const vf first = reinterpret_cast<vf>((half + 127) << 23);
  const vf second = reinterpret_cast<vf>((whole - half + 127) << 23);
  return x * first * second;
#endif
}

/// e^x within 2 ulp, gradually to 0 below and to ∞ above the range of fp32; NaN stays NaN.
/// x = n·ln 2 + r with |r| ≤ ln 2 / 2; e^r by its Taylor polynomial of degree 7 (its rest is below 2^-27), times 2^n.
ZF_INLINE vf exp(vf x) {
  constexpr float kLog2E = 1.44269504088896341F;
  constexpr float kLn2High = 0.693145751953125F;      // 16 bits, so that n times it is exact
  constexpr float kLn2Low = 1.42860682030941723e-6F;  // ln 2 − kLn2High
  constexpr float kRound = 12582912.0F;               // 1.5 · 2^23: adding it rounds to an integer
  // min and max return their second argument where one is NaN.
  const vf clamped = min(set1(89.0F), max(set1(-104.0F), x));
  const vf shifted = fma(clamped, set1(kLog2E), set1(kRound));
  const vf n = shifted - set1(kRound);
  const vf r = fma(n, set1(-kLn2Low), fma(n, set1(-kLn2High), clamped));
  vf p = set1(1.0F / 5040);
  p = fma(p, r, set1(1.0F / 720));
  p = fma(p, r, set1(1.0F / 120));
  p = fma(p, r, set1(1.0F / 24));
  p = fma(p, r, set1(1.0F / 6));
  p = fma(p, r, set1(0.5F));
  p = fma(p * r, r, r) + set1(1.0F);
  return scale_by_power_of_two(p, n);
}

/// ln x within 2 ulp for normal x > 0. Infinity and NaN stay what they are. With x = 2^k · m, m in [√½, √2): ln m = 2
/// artanh(s), s = (m − 1) / (m + 1).
ZF_INLINE float log(float x) {
  if (!(x < __builtin_inff())) return x;
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  const uint32_t offset = bits - 0x3f3504f3U;  // of √½
  const auto k = static_cast<double>(static_cast<int32_t>(offset) >> 23);
  const uint32_t mantissa_bits = (offset & 0x007fffffU) + 0x3f3504f3U;
  float mantissa;
  __builtin_memcpy(&mantissa, &mantissa_bits, 4);
  const double s = (static_cast<double>(mantissa) - 1.0) / (static_cast<double>(mantissa) + 1.0);
  const double s2 = s * s;
  const double series = 1.0 + s2 * (1.0 / 3 + s2 * (1.0 / 5 + s2 * (1.0 / 7 + s2 * (1.0 / 9 + s2 * (1.0 / 11)))));
  return static_cast<float>(k * 0.693147180559945309 + 2.0 * s * series);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
