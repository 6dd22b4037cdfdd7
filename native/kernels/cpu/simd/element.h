#pragma once

// The element types of the kernels' arrays. All arithmetic is in fp32: load() widens, store() rounds. A kernel over any
// of them is a template over the element, run with
//   with_element(args.dtype, [&](auto element) { forward<decltype(element)>(args); });
// so a further storage type is its load() and store(), and one case here.

#include "core/dtype_enum.h"
#include "kernels/cpu/simd/f16_bits.h"
#include "kernels/cpu/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

/// Calls body with a value of the C++ type that stores `dtype`; only its type counts.
template <class Body>
ZF_INLINE void with_element(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF32: return body(float{});
    case DType::kBF16: return body(uint16_t{});
    case DType::kF16: return body(Half{});
  }
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
