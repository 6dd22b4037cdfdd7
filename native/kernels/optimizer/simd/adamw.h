#pragma once

#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/adamw_scalars.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/optimizer/adamw.h for the arithmetic.
ZF_DECLARE_KERNEL(void adamw_tile(const OptimizerTile& tile, const AdamWScalars& scalars))

}  // namespace zerofleet::cpu
