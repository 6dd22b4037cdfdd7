#pragma once

#include <stdint.h>

namespace zerofleet {

/// Storage type of an array's elements. Apart from core/dtype.h so that SIMD sources can name a type: they may not
/// include functions that are compiled for other instruction-set paths too.
enum class DType : uint8_t { kF32, kBF16, kF16 };

}  // namespace zerofleet
