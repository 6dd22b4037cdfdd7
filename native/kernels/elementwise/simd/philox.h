#pragma once

// Philox4x32-10 (core/philox.h) on kLanes counters at once. For SIMD sources only.

#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

typedef uint64_t vl __attribute__((vector_size(kLanes * 4)));  // half as many lanes of 64 bits

/// The products of the lanes with even indices of a with b, in 64 bits.
ZF_INLINE vl multiply_even(vu a, uint32_t b) {
#if defined(__AVX512F__)
  // Uses the mask of all lanes, because the plain form reads an undefined value, which the compiler warns of.
  return reinterpret_cast<vl>(
      _mm512_maskz_mul_epu32(0xff, reinterpret_cast<__m512i>(a), _mm512_set1_epi64(static_cast<int64_t>(b))));
#elif defined(__AVX2__)
  return reinterpret_cast<vl>(
      _mm256_mul_epu32(reinterpret_cast<__m256i>(a), _mm256_set1_epi64x(static_cast<int64_t>(b))));
#else
  return (reinterpret_cast<vl>(a) & 0xffffffffU) * static_cast<uint64_t>(b);
#endif
}

/// The upper halves of the products of a's lanes with b.
ZF_INLINE vu multiply_high(vu a, uint32_t b) {
  const vl even = multiply_even(a, b) >> 32;
  const vl odd = multiply_even(reinterpret_cast<vu>(reinterpret_cast<vl>(a) >> 32), b);
  return reinterpret_cast<vu>(even | (odd & 0xffffffff00000000U));
}

struct PhiloxWords {
  vu word[4];
};

/// The four words at the counters {first + lane, 0, 0} of 64 + 32 + 32 bits. `first` is a multiple of kLanes.
ZF_INLINE PhiloxWords philox(uint64_t key, uint64_t first) {
  constexpr uint32_t kMul0 = 0xD2511F53U, kMul1 = 0xCD9E8D57U;
  vu lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = static_cast<uint32_t>(i);
  vu c0 = lane + static_cast<uint32_t>(first), c1 = vu{} + static_cast<uint32_t>(first >> 32), c2{}, c3{};
  auto key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const vu high0 = multiply_high(c0, kMul0), low0 = c0 * kMul0;
    const vu high1 = multiply_high(c2, kMul1), low1 = c2 * kMul1;
    c0 = high1 ^ c1 ^ key0;
    c1 = low1;
    c2 = high0 ^ c3 ^ key1;
    c3 = low0;
    key0 += 0x9E3779B9U;
    key1 += 0xBB67AE85U;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
