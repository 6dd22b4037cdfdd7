#include "kernels/cpu/simd/write_past_caches.h"

#include "kernels/cpu/simd/bf16_bits.h"
#include "kernels/cpu/simd/f16_bits.h"
#include "kernels/cpu/simd/stream.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

/// Bits of each element type as stream() takes them.
ZF_INLINE vf rounded(const float*, vf values) { return values; }
ZF_INLINE vh rounded(const Bf16*, vf values) { return bf16_bits(values); }
ZF_INLINE vh rounded(const Half*, vf values) { return f16_bits(values); }

template <class Element, class Bits>
ZF_INLINE void write(const float* source, unsigned char* target_bytes, int64_t numel) {
  auto* target = reinterpret_cast<Element*>(target_bytes);
  if (can_stream(target)) {
    int64_t i = 0;
    for (; i + kLanes <= numel; i += kLanes) {
      stream(reinterpret_cast<Bits*>(target + i), rounded(target, load(source + i)));
    }
    if (i < numel) store_first(target + i, load_first(source + i, static_cast<int>(numel - i)), static_cast<int>(numel - i));
  } else {
    sweep(numel, [&](int64_t i, auto part) { store(target + i, load(source + i, part), part); });
  }
}

}  // namespace

void write_f32_past_caches(const float* source, unsigned char* target, int64_t numel) {
  write<float, float>(source, target, numel);
}

void write_bf16_past_caches(const float* source, unsigned char* target, int64_t numel) {
  write<Bf16, uint16_t>(source, target, numel);
}

void write_f16_past_caches(const float* source, unsigned char* target, int64_t numel) {
  write<Half, uint16_t>(source, target, numel);
}

void finish_writes_past_caches() { finish_streaming(); }

}  // namespace zerofleet::cpu::ZF_ISA_NS
