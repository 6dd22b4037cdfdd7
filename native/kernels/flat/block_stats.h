#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/device/context.h"
#include "core/dtype.h"

namespace zerofleet {

/// For each block of values (num_blocks × block_numel) of `dtype`:
/// - sum_squares (num_blocks): its sum of squares in fp64 and in a fixed order (32 running sums by element index mod
///   32, folded by halves). A NaN or infinity in a block makes it NaN or infinite; finite values cannot overflow it.
/// - max_abs (num_blocks): its largest magnitude, exact. A NaN counts as more than infinity.
///
/// All instruction-set paths give equal bits (of a NaN only that it is one).
/// Throws Error{"invalid_argument"} unless sizes agree and block_numel is a positive multiple of 32.
void block_stats(const Context& context, std::span<const std::byte> values, DType dtype, std::int64_t block_numel,
                 std::span<double> sum_squares, std::span<float> max_abs);

}  // namespace zerofleet
