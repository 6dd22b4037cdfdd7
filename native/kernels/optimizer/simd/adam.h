#pragma once

#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/adam_scalars.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/optimizer/adam.h for the arithmetic.
ZF_DECLARE_KERNEL(void adam_tile(const OptimizerTile& tile, const AdamScalars& scalars))

}  // namespace zerofleet::cpu
