#pragma once

// Elements of every storage type as fp32 vectors, with equal bits on every path. For SIMD sources only.

#include "kernels/cpu/simd/bf16_bits.h"
#include "kernels/cpu/simd/element_kind.h"
#include "kernels/cpu/simd/f16_bits.h"
#include "kernels/cpu/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

/// Calls body with a null pointer to the element type, for it to take the type from:
///   with_element(kind, [&]<class Element>(Element*) { … });
template <class Body>
ZF_INLINE void with_element(ElementKind kind, Body body) {
  switch (kind) {
    case ElementKind::kF32: return body(static_cast<float*>(nullptr));
    case ElementKind::kBF16: return body(static_cast<Bf16*>(nullptr));
    case ElementKind::kF16: return body(static_cast<Half*>(nullptr));
  }
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
