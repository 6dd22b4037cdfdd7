#pragma once

#include "core/dtype.h"
#include "kernels/cpu/simd/element_kind.h"

namespace zerofleet::cpu {

constexpr ElementKind element_kind(DType dtype) { return static_cast<ElementKind>(dtype); }
static_assert(element_kind(DType::kF32) == ElementKind::kF32 && element_kind(DType::kBF16) == ElementKind::kBF16 &&
              element_kind(DType::kF16) == ElementKind::kF16);

}  // namespace zerofleet::cpu
