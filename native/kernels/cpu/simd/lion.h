#pragma once

#include "kernels/lion_scalars.h"
#include "kernels/cpu/simd/declare.h"
#include "kernels/cpu/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/lion.h for the arithmetic.
ZF_DECLARE_KERNEL(void lion_tile(const OptimizerTile& tile, const LionScalars& scalars))

}  // namespace zerofleet::cpu
