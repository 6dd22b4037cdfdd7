#pragma once

// Rounded writes past the caches, for each element type of ZeRO's kernels. For SIMD sources only.

#include "kernels/common/simd/bf16_bits.h"
#include "kernels/common/simd/f16_bits.h"
#include "kernels/common/simd/stream.h"

namespace zerofleet::cpu::ZF_ISA_NS {

// `target` must be aligned to whole vectors of its elements.
ZF_INLINE void stream_elements(float* target, vf values, Whole) { stream(target, values); }
ZF_INLINE void stream_elements(Bf16* target, vf values, Whole) { stream(&target->bits, bf16_bits(values)); }
ZF_INLINE void stream_elements(Half* target, vf values, Whole) { stream(&target->bits, f16_bits(values)); }

template <class Element>
ZF_INLINE void stream_elements(Element* target, vf values, Rest rest) {
  store_first(target, values, rest.count);
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
