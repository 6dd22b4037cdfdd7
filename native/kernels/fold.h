#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/context.h"
#include "core/dtype.h"

namespace zerofleet {

/// Adds `num_pieces` pieces, one after the other as they lie in `pieces` (num_pieces, n), to sum (n) in fp32:
/// ((sum + p0) + p1) + p2 …; with `restart` the sum begins at 0 instead of what is there. One pass over memory.
/// Throws Error{"invalid_argument"} unless pieces has num_pieces × n elements of `dtype`.
void fold_pieces(const Context& context, std::span<const std::byte> pieces, DType dtype, std::int64_t num_pieces,
                 bool restart, std::span<float> sum);

}  // namespace zerofleet
