#include "kernels/cpu/simd/cast.h"

#include "kernels/cpu/simd/bf16_bits.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void narrow_to_bf16(const float* __restrict source, uint16_t* __restrict target, int64_t numel) {
  for (int64_t i = 0; i < numel; ++i) target[i] = bf16_bits(source[i]);
}

void widen_from_bf16(const uint16_t* __restrict source, float* __restrict target, int64_t numel) {
  for (int64_t i = 0; i < numel; ++i) target[i] = from_bf16_bits(source[i]);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
