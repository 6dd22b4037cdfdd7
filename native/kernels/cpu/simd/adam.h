#pragma once

#include "kernels/adam_scalars.h"
#include "kernels/cpu/simd/declare.h"
#include "kernels/cpu/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/adam.h for the arithmetic.
ZF_DECLARE_KERNEL(void adam_tile(const OptimizerTile& tile, const AdamScalars& scalars))

}  // namespace zerofleet::cpu
