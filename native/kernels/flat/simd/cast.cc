#include "kernels/flat/simd/cast.h"

#include "kernels/common/simd/elements.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void scale_to(const float* source, float factor, void* target, DType dtype, int64_t numel) {
  with_element(dtype, [&]<class Element>(Element*) {
    auto* elements = static_cast<Element*>(target);
    sweep(numel, [&](int64_t i, auto part) { store(elements + i, load(source + i, part) * factor, part); });
  });
}

void widen_from_bf16(const uint16_t* __restrict source, float* __restrict target, int64_t numel) {
  for (int64_t i = 0; i < numel; ++i) target[i] = from_bf16_bits(source[i]);
}

void narrow_to_f16(const float* source, uint16_t* target, int64_t numel) {
  Half* halves = reinterpret_cast<Half*>(target);
  sweep(numel, [&](int64_t i, auto part) { store(halves + i, load(source + i, part), part); });
}

void widen_from_f16(const uint16_t* source, float* target, int64_t numel) {
  const Half* halves = reinterpret_cast<const Half*>(source);
  sweep(numel, [&](int64_t i, auto part) { store(target + i, load(halves + i, part), part); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
