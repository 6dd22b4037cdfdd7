#pragma once

// The element types of the kernels' arrays. All arithmetic is in fp32: load() widens, store() rounds. A kernel over any
// of them is a template over the element, and a further storage type is its load() and store(), and one case here.
// For SIMD sources only.

#include "core/dtype_enum.h"
#include "kernels/common/simd/bf16_bits.h"
#include "kernels/common/simd/f16_bits.h"
#include "kernels/common/simd/rows.h"
#include "kernels/common/simd/vec.h"

namespace zerofleet::cpu::ZF_ISA_NS {

template <class BFloat16, class Body>
ZF_INLINE void with_element_or(DType dtype, Body body) {
  switch (dtype) {
    case DType::kF32:
      return body(static_cast<float*>(nullptr));
    case DType::kBF16:
      return body(static_cast<BFloat16*>(nullptr));
    case DType::kF16:
      return body(static_cast<Half*>(nullptr));
  }
}

/// Calls body with a null pointer to the element type, for it to take the type from:
///   with_element(dtype, [&]<class Element>(Element*) { … });
/// For ZeRO's kernels: bf16 is rounded to equal bits on every path.
template <class Body>
ZF_INLINE void with_element(DType dtype, Body body) {
  with_element_or<Bf16>(dtype, body);
}

/// The same for the model's kernels: bf16 is rounded as fast as the path can (bf16_bits.h says how that differs).
template <class Body>
ZF_INLINE void with_model_element(DType dtype, Body body) {
  with_element_or<uint16_t>(dtype, body);
}

/// The elements of a row.
template <class T>
ZF_INLINE const T* row_of(const ConstRows& rows, int64_t row) {
  return static_cast<const T*>(rows.data) + row * rows.stride;
}
template <class T>
ZF_INLINE T* row_of(const Rows& rows, int64_t row) {
  return static_cast<T*>(rows.data) + row * rows.stride;
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
