#pragma once

#include <cstddef>
#include <span>

#include "core/context.h"
#include "core/dtype.h"

namespace zerofleet {

/// source (n) → target (n) of `dtype`: a copy for fp32, round to nearest even for bf16 and fp16 (NaN stays a
/// quiet NaN, subnormals are kept). Throws Error{"invalid_argument"} unless target has exactly n elements.
void cast_from_f32(const Context& context, std::span<const float> source, DType dtype, std::span<std::byte> target);

/// source of `dtype` (n) → target (n); exact, a NaN of fp16 becomes a quiet one. Throws Error{"invalid_argument"} unless source has exactly n elements.
void cast_to_f32(const Context& context, std::span<const std::byte> source, DType dtype, std::span<float> target);

}  // namespace zerofleet
