#pragma once

#include <cstddef>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"

namespace zerofleet {

/// source (n) × factor → target (n) of `dtype`, the product in fp32. For fp32 that is all (and with factor 1 a copy of
/// the bits). For bf16 and fp16 the product is then rounded to nearest even (NaN stays a quiet NaN, subnormals are
/// kept).
/// Throws Error{"invalid_argument"} unless target has exactly n elements.
void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target,
                   float factor = 1);

/// source of `dtype` (n) → target (n); exact, a NaN of fp16 becomes a quiet one.
/// Throws Error{"invalid_argument"} unless source has exactly n elements.
void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target);

}  // namespace zerofleet
