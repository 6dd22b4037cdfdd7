#pragma once

#include <stdint.h>

namespace zerofleet {

/// Storage of a quantized matrix: codes of 4 or 8 bits an element (kernels/quantize).
enum class QuantFormat : uint8_t { kNf4, kInt8 };

}  // namespace zerofleet
