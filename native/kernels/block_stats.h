#pragma once

#include <cstdint>
#include <span>

#include "core/context.h"

namespace zerofleet {

/// Sum of squares of each block: values (num_blocks × block_numel) → sums (num_blocks), in fp64 and in a fixed order
/// (32 running sums by element index mod 32, folded by halves). A NaN or infinity in a block makes its sum NaN or
/// infinite; finite fp32 values cannot overflow it. All instruction-set paths give equal bits.
/// Throws Error{"invalid_argument"} unless sizes agree and block_numel is a positive multiple of 32.
void block_sum_squares(const Context& context, std::span<const float> values, std::int64_t block_numel,
                       std::span<double> sums);

}  // namespace zerofleet
