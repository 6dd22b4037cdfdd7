#include "kernels/cpu/simd/adamw.h"

#include "kernels/cpu/simd/bf16_bits.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

inline __attribute__((always_inline)) void write_param(uint16_t* target, float value) { *target = bf16_bits(value); }
inline __attribute__((always_inline)) void write_param(float* target, float value) { *target = value; }

template <class Param>
inline __attribute__((always_inline)) void adamw_tile(const AdamWTile& tile, Param* __restrict params,
                                                      const AdamWScalars& scalars) {
  float* __restrict master = tile.master;
  float* __restrict exp_avg = tile.exp_avg;
  float* __restrict exp_avg_sq = tile.exp_avg_sq;
  const float* __restrict grad = tile.grad;
  const AdamWScalars k = scalars;
  const float decay_factor = tile.decay_factor;
  for (int64_t i = 0; i < tile.numel; ++i) {
    const float g = grad[i] * k.grad_factor;
    const float m = exp_avg[i] + (g - exp_avg[i]) * k.one_minus_beta1;
    const float v = exp_avg_sq[i] * k.beta2 + g * g * k.one_minus_beta2;
    const float denominator = __builtin_sqrtf(v) * k.inv_sqrt_correction2 + k.eps;
    const float p = master[i] * decay_factor - k.step_size * m / denominator;
    exp_avg[i] = m;
    exp_avg_sq[i] = v;
    master[i] = p;
    write_param(params + i, p);
  }
}

}  // namespace

void adamw_bf16(const AdamWTile& tile, uint16_t* params, const AdamWScalars& scalars) {
  adamw_tile(tile, params, scalars);
}

void adamw_f32(const AdamWTile& tile, float* params, const AdamWScalars& scalars) { adamw_tile(tile, params, scalars); }

}  // namespace zerofleet::cpu::ZF_ISA_NS
