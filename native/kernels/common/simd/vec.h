#pragma once

// Vectors of the native width of one instruction-set path. For SIMD sources only: everything lives in ZF_ISA_NS and is
// forced inline, so that code for one path can never be linked into another.

#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define ZF_INLINE static inline __attribute__((always_inline))
/// After a lambda's parameters.
#define ZF_INLINE_LAMBDA __attribute__((always_inline))

namespace zerofleet::cpu::ZF_ISA_NS {

#if defined(__AVX512F__)
constexpr int kLanes = 16;
#elif defined(__AVX2__)
constexpr int kLanes = 8;
#else
constexpr int kLanes = 4;
#endif

typedef float vf __attribute__((vector_size(kLanes * 4)));
typedef int32_t vi __attribute__((vector_size(kLanes * 4)));
typedef uint32_t vu __attribute__((vector_size(kLanes * 4)));
typedef uint16_t vh __attribute__((vector_size(kLanes * 2)));
typedef float vf_unaligned __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint32_t vu_unaligned __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef uint16_t vh_unaligned __attribute__((vector_size(kLanes * 2), aligned(2), may_alias));

ZF_INLINE vf zero() { return vf{}; }
ZF_INLINE vf set1(float x) { return x - vf{}; }
ZF_INLINE vf load(const float* p) { return *reinterpret_cast<const vf_unaligned*>(p); }
ZF_INLINE void store(float* p, vf x) { *reinterpret_cast<vf_unaligned*>(p) = x; }
ZF_INLINE vu as_bits(vf x) { return reinterpret_cast<vu>(x); }
ZF_INLINE vf from_bits(vu x) { return reinterpret_cast<vf>(x); }

/// a·b + c: one rounding where the path has a fused instruction, two elsewhere.
ZF_INLINE vf fma(vf a, vf b, vf c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__AVX2__)
  return _mm256_fmadd_ps(a, b, c);
#else
  return a * b + c;
#endif
}

ZF_INLINE vf select(vi mask, vf yes, vf no) { return mask ? yes : no; }

/// a where a > b, else b: also where either is NaN, and for zeros of either sign. The compiler makes two instructions
/// of the comparison.
ZF_INLINE vf max(vf a, vf b) {
#if defined(__AVX512F__)
  return _mm512_maskz_max_ps(0xffff, a, b);  // the unmasked form trips a false warning of GCC 12
#elif defined(__AVX2__)
  return _mm256_max_ps(a, b);
#else
  return a > b ? a : b;
#endif
}
/// a where a < b, else b.
ZF_INLINE vf min(vf a, vf b) {
#if defined(__AVX512F__)
  return _mm512_maskz_min_ps(0xffff, a, b);
#elif defined(__AVX2__)
  return _mm256_min_ps(a, b);
#else
  return a < b ? a : b;
#endif
}

ZF_INLINE vu widen(const uint16_t* p) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  // GCC 12 widens the halves one by one.
  return reinterpret_cast<vu>(_mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))));
#else
  return __builtin_convertvector(*reinterpret_cast<const vh_unaligned*>(p), vu);
#endif
}

/// Exact widening of bfloat16.
ZF_INLINE vf load(const uint16_t* p) { return from_bits(widen(p) << 16); }

/// Round to nearest, ties to even; the AVX512-BF16 instruction flushes subnormals, see bf16_bits.h for why that may be.
ZF_INLINE void store(uint16_t* p, vf x) {
#if defined(__AVX512BF16__)
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(x)));
#else
  const vu bits = as_bits(x);
  const vu rounded = bits + 0x7fffU + ((bits >> 16) & 1U);
  const vu half = (x == x ? rounded : bits | 0x400000U) >> 16;  // a NaN is made quiet
#if defined(__AVX2__) && !defined(__AVX512F__)
  const auto words = reinterpret_cast<__m256i>(half);
  const __m128i low = _mm256_castsi256_si128(words), high = _mm256_extracti128_si256(words, 1);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_packus_epi32(low, high));
#else
  *reinterpret_cast<vh_unaligned*>(p) = __builtin_convertvector(half, vh);
#endif
#endif
}

/// The first `count` lanes from memory, zero in the others. 0 ≤ count ≤ kLanes. Nothing beyond them is touched.
#if defined(__AVX512F__)
ZF_INLINE __mmask16 first_lanes(int count) { return static_cast<__mmask16>((1U << count) - 1U); }
ZF_INLINE vf load_first(const float* p, int count) { return _mm512_maskz_loadu_ps(first_lanes(count), p); }
ZF_INLINE vf load_first(const uint16_t* p, int count) {
  const __m256i half = _mm256_maskz_loadu_epi16(first_lanes(count), p);
  return from_bits(__builtin_convertvector(reinterpret_cast<vh>(half), vu) << 16);
}
ZF_INLINE void store_first(float* p, vf x, int count) { _mm512_mask_storeu_ps(p, first_lanes(count), x); }
ZF_INLINE void store_first(uint16_t* p, vf x, int count) {
  vh half;
  store(reinterpret_cast<uint16_t*>(&half), x);
  _mm256_mask_storeu_epi16(p, first_lanes(count), reinterpret_cast<__m256i>(half));
}
#else
template <class T>
ZF_INLINE vf load_first(const T* p, int count) {
  T lanes[kLanes] = {};
  for (int i = 0; i < count; ++i) lanes[i] = p[i];
  return load(lanes);
}
template <class T>
ZF_INLINE void store_first(T* p, vf x, int count) {
  T lanes[kLanes];
  store(lanes, x);
  for (int i = 0; i < count; ++i) p[i] = lanes[i];
}
#endif

/// A loop over a row visits it in whole vectors and at most one rest. Both kinds read alike in the loop's body:
///   sweep(count, [&](int64_t i, auto part) { store(y + i, load(x + i, part) * factor, part); });
struct Whole {};
struct Rest {
  int count;
};
template <class T>
ZF_INLINE vf load(const T* p, Whole) {
  return load(p);
}
template <class T>
ZF_INLINE vf load(const T* p, Rest rest) {
  return load_first(p, rest.count);
}
template <class T>
ZF_INLINE void store(T* p, vf x, Whole) {
  store(p, x);
}
template <class T>
ZF_INLINE void store(T* p, vf x, Rest rest) {
  store_first(p, x, rest.count);
}

/// x in the lanes that a loop's part covers, `other` beyond them.
ZF_INLINE vf within(vf x, Whole, float) { return x; }
ZF_INLINE vf within(vf x, Rest rest, float other) {
  vi lane;
  for (int i = 0; i < kLanes; ++i) lane[i] = i;
  return select(lane < rest.count, x, set1(other));
}

template <class Body>
ZF_INLINE void sweep(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) body(i, Whole{});
  if (i < count) body(i, Rest{static_cast<int>(count - i)});
}

/// The lanes with those kDistance apart exchanged.
template <int kDistance>
ZF_INLINE vf exchange(vf x) {
  vi source;
  for (int i = 0; i < kLanes; ++i) source[i] = i ^ kDistance;
  return __builtin_shuffle(x, source);
}

/// Sum of the lanes, by halving: lane i plus lane i + n/2, and so on.
ZF_INLINE float sum_lanes(vf x) {
#if defined(__AVX512F__)
  x += exchange<8>(x);
#endif
#if defined(__AVX2__)
  x += exchange<4>(x);
#endif
  x += exchange<2>(x);
  x += exchange<1>(x);
  return x[0];
}

ZF_INLINE float max_lanes(vf x) {
#if defined(__AVX512F__)
  x = max(x, exchange<8>(x));
#endif
#if defined(__AVX2__)
  x = max(x, exchange<4>(x));
#endif
  x = max(x, exchange<2>(x));
  x = max(x, exchange<1>(x));
  return x[0];
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
