#pragma once

#include "kernels/adagrad_scalars.h"
#include "kernels/cpu/simd/declare.h"
#include "kernels/cpu/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/adagrad.h for the arithmetic.
ZF_DECLARE_KERNEL(void adagrad_tile(const OptimizerTile& tile, const AdagradScalars& scalars))

}  // namespace zerofleet::cpu
