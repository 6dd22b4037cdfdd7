#include "kernels/cpu/simd/adamw.h"

#include "kernels/cpu/simd/bf16_bits.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/cpu/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

// Elements that are treated between two prefetches: one cache line of each fp32 array.
constexpr int64_t kLine = 16;

ZF_INLINE float root(float x) { return __builtin_sqrtf(x); }

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

/// The new state of one element, or of a vector of them.
template <class Value>
struct Updated {
  Value master, exp_avg, exp_avg_sq;
};

template <class Value>
ZF_INLINE Updated<Value> update(Value p, Value m, Value v, Value grad, float decay_factor, const AdamWScalars& k) {
  const Value g = grad * k.grad_factor;
  m = m + (g - m) * k.one_minus_beta1;
  v = v * k.beta2 + g * g * k.one_minus_beta2;
  const Value denominator = root(v) * k.inv_sqrt_correction2 + k.eps;
  return {p * decay_factor - k.step_size * m / denominator, m, v};
}

ZF_INLINE void write_param(uint16_t* target, float value) { *target = bf16_bits(value); }
ZF_INLINE void write_param(float* target, float value) { *target = value; }

template <bool kStreamed>
ZF_INLINE void write_params(uint16_t* target, vf values) {
  const vh halves = bf16_bits(values);
  if constexpr (kStreamed) {
    stream(target, halves);
  } else {
    *reinterpret_cast<vh_unaligned*>(target) = halves;
  }
}

template <bool kStreamed>
ZF_INLINE void write_params(float* target, vf values) {
  if constexpr (kStreamed) {
    stream(target, values);
  } else {
    store(target, values);
  }
}

/// Memory is the limit. What helps it, measured: asking for the lines of all four arrays a few lines ahead (the hardware
/// follows that many streams badly), and writing the parameters past the caches, since they are not read here.
template <bool kStreamed, class Param>
ZF_INLINE void update_tile(const AdamWTile& tile, Param* params, const AdamWScalars& scalars) {
  const AdamWScalars k = scalars;
  const float decay_factor = tile.decay_factor;
  int64_t i = 0;
  for (; i + kLine <= tile.numel; i += kLine) {
    prefetch_ahead(tile.master + i);
    prefetch_ahead(tile.exp_avg + i);
    prefetch_ahead(tile.exp_avg_sq + i);
    prefetch_ahead(tile.grad + i);
    for (int64_t j = i; j < i + kLine; j += kLanes) {
      const auto next = update(load(tile.master + j), load(tile.exp_avg + j), load(tile.exp_avg_sq + j),
                               load(tile.grad + j), decay_factor, k);
      store(tile.master + j, next.master);
      store(tile.exp_avg + j, next.exp_avg);
      store(tile.exp_avg_sq + j, next.exp_avg_sq);
      write_params<kStreamed>(params + j, next.master);
    }
  }
  for (; i < tile.numel; ++i) {
    const auto next = update(tile.master[i], tile.exp_avg[i], tile.exp_avg_sq[i], tile.grad[i], decay_factor, k);
    tile.master[i] = next.master;
    tile.exp_avg[i] = next.exp_avg;
    tile.exp_avg_sq[i] = next.exp_avg_sq;
    write_param(params + i, next.master);
  }
  if constexpr (kStreamed) finish_streaming();
}

template <class Param>
ZF_INLINE void adamw_tile(const AdamWTile& tile, Param* params, const AdamWScalars& scalars) {
  if (can_stream(params)) {
    update_tile<true>(tile, params, scalars);
  } else {
    update_tile<false>(tile, params, scalars);
  }
}

}  // namespace

void adamw_bf16(const AdamWTile& tile, uint16_t* params, const AdamWScalars& scalars) {
  adamw_tile(tile, params, scalars);
}

void adamw_f32(const AdamWTile& tile, float* params, const AdamWScalars& scalars) { adamw_tile(tile, params, scalars); }

}  // namespace zerofleet::cpu::ZF_ISA_NS
