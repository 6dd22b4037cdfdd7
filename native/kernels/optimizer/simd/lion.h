#pragma once

#include "kernels/optimizer/lion_scalars.h"
#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/optimizer/lion.h for the arithmetic.
ZF_DECLARE_KERNEL(void lion_tile(const OptimizerTile& tile, const LionScalars& scalars))

}  // namespace zerofleet::cpu
