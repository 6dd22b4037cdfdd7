#pragma once

#include <stdint.h>

namespace zerofleet::cpu {

/// core/dtype.h for SIMD sources, which may not include it.
enum class ElementKind : uint8_t { kF32, kBF16, kF16 };

}  // namespace zerofleet::cpu
