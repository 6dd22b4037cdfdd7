#pragma once

#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/adagrad_scalars.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/optimizer/adagrad.h for the arithmetic.
ZF_DECLARE_KERNEL(void adagrad_tile(const OptimizerTile& tile, const AdagradScalars& scalars))

}  // namespace zerofleet::cpu
