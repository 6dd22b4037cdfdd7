#pragma once

#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/sgd_scalars.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

// See kernels/optimizer/sgd.h for the arithmetic: without a momentum buffer, with one, and with Nesterov's look ahead.
ZF_DECLARE_KERNEL(void sgd_tile(const OptimizerTile& tile, const SgdScalars& scalars))
ZF_DECLARE_KERNEL(void sgd_momentum_tile(const OptimizerTile& tile, const SgdScalars& scalars))
ZF_DECLARE_KERNEL(void sgd_nesterov_tile(const OptimizerTile& tile, const SgdScalars& scalars))

}  // namespace zerofleet::cpu
