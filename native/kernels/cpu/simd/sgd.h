#pragma once

#include "kernels/cpu/simd/declare.h"
#include "kernels/cpu/simd/optimizer_tile.h"
#include "kernels/sgd_scalars.h"

namespace zerofleet::cpu {

// See kernels/sgd.h for the arithmetic: without a momentum buffer, with one, and with Nesterov's look ahead.
ZF_DECLARE_KERNEL(void sgd_tile(const OptimizerTile& tile, const SgdScalars& scalars))
ZF_DECLARE_KERNEL(void sgd_momentum_tile(const OptimizerTile& tile, const SgdScalars& scalars))
ZF_DECLARE_KERNEL(void sgd_nesterov_tile(const OptimizerTile& tile, const SgdScalars& scalars))

}  // namespace zerofleet::cpu
