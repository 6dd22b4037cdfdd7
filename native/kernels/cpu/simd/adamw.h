#pragma once

#include "kernels/adamw_scalars.h"
#include "kernels/cpu/simd/declare.h"
#include "kernels/cpu/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/adamw.h for the arithmetic.
ZF_DECLARE_KERNEL(void adamw_tile(const OptimizerTile& tile, const AdamWScalars& scalars))

}  // namespace zerofleet::cpu
