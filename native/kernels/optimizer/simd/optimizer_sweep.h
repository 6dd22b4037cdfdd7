#pragma once

// The loop that the element-wise optimizers share. For SIMD sources only.

#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/stream.h"
#include "kernels/common/simd/stream_elements.h"
#include "kernels/common/simd/vec.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu::ZF_ISA_NS {

// Elements that are treated between two prefetches: one cache line of each fp32 array.
constexpr int64_t kLine = 16;

ZF_INLINE vf root(vf x) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(0xffff, x);  // the unmasked form trips a false warning of GCC 12
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#else
  for (int i = 0; i < kLanes; ++i) x[i] = __builtin_sqrtf(x[i]);
  return x;
#endif
}

/// Zero for subnormal numbers, which states do not hold (kernels/optimizer/optimizer_segment.h).
ZF_INLINE vf flushed(vf x) {
#if defined(__AVX512F__)
  const __m512i exponent = _mm512_set1_epi32(0x7f800000);
  return _mm512_maskz_mov_ps(_mm512_test_epi32_mask(reinterpret_cast<__m512i>(x), exponent), x);
#else
  const vu bits = as_bits(x);
  return from_bits(bits & ~reinterpret_cast<vu>((bits & 0x7f800000U) == 0U));
#endif
}

/// One vector of every array of a tile.
struct Elements {
  vf master = zero();
  vf states[2] = {zero(), zero()};
  vf grad = zero();
};

/// Which arrays a sweep touches besides the master.
struct SweepArrays {
  int num_states;
  bool reads_grad = true;
  bool writes_states = true;
};
template <int kNumStates>
constexpr SweepArrays kWithStates{kNumStates};

template <SweepArrays kArrays>
ZF_INLINE void prefetch_line(const OptimizerTile& tile, int64_t i) {
  prefetch_ahead(tile.master + i);
  if constexpr (kArrays.reads_grad) prefetch_ahead(tile.grad + i);
  if constexpr (kArrays.num_states > 0) prefetch_ahead(tile.states[0] + i);
  if constexpr (kArrays.num_states > 1) prefetch_ahead(tile.states[1] + i);
}

/// The new master goes nowhere else.
struct NoParams {
  template <class Part>
  __attribute__((always_inline)) void write(int64_t, vf, Part) const {}
};

template <class Element>
struct StreamedParams {
  Element* params;
  template <class Part>
  __attribute__((always_inline)) void write(int64_t i, vf values, Part part) const {
    stream_elements(params + i, values, part);
  }
};

template <SweepArrays kArrays, class Rule, class Params, class Part>
ZF_INLINE void update_elements(const OptimizerTile& tile, int64_t i, const Rule& rule, Params params, Part part) {
  Elements e;
  e.master = load(tile.master + i, part);
  if constexpr (kArrays.reads_grad) e.grad = load(tile.grad + i, part);
  if constexpr (kArrays.num_states > 0) e.states[0] = load(tile.states[0] + i, part);
  if constexpr (kArrays.num_states > 1) e.states[1] = load(tile.states[1] + i, part);
  rule(e);
  store(tile.master + i, e.master, part);
  if constexpr (kArrays.writes_states && kArrays.num_states > 0) store(tile.states[0] + i, e.states[0], part);
  if constexpr (kArrays.writes_states && kArrays.num_states > 1) store(tile.states[1] + i, e.states[1], part);
  params.write(i, e.master, part);
}

template <SweepArrays kArrays, class Rule, class Params>
ZF_INLINE void sweep_arrays(const OptimizerTile& tile, const Rule& rule, Params params) {
  int64_t i = 0;
  for (; i + kLine <= tile.numel; i += kLine) {
    prefetch_line<kArrays>(tile, i);
    for (int64_t j = i; j < i + kLine; j += kLanes) update_elements<kArrays>(tile, j, rule, params, Whole{});
  }
  for (; i + kLanes <= tile.numel; i += kLanes) update_elements<kArrays>(tile, i, rule, params, Whole{});
  if (i < tile.numel) update_elements<kArrays>(tile, i, rule, params, Rest{static_cast<int>(tile.numel - i)});
}

/// Loads every vector of the tile, lets `rule(Elements&)` change master and states, stores those. Memory is the limit.
/// What helps, measured: asking for the lines of all arrays a few lines ahead (the hardware follows that many streams
/// badly), and writing the parameters past the caches, since they are not read here.
template <SweepArrays kArrays, class Rule>
ZF_INLINE void sweep_tile(const OptimizerTile& of, const Rule& rule) {
  const OptimizerTile tile = of;  // a copy, so that no store can change its pointers
  if (tile.params == nullptr) return sweep_arrays<kArrays>(tile, rule, NoParams{});
  with_element(tile.params_dtype, [&]<class Element>(Element*) {
    sweep_arrays<kArrays>(tile, rule, StreamedParams<Element>{static_cast<Element*>(tile.params)});
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
