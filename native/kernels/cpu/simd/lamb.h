#pragma once

#include "kernels/cpu/simd/declare.h"
#include "kernels/cpu/simd/optimizer_tile.h"
#include "kernels/lamb_scalars.h"

namespace zerofleet::cpu {

struct LambTileSums {
  double weights;
  double updates;
};

// See kernels/lamb.h for the arithmetic. The tile of the first pass is one block, a multiple of 32 elements.
ZF_DECLARE_KERNEL(LambTileSums lamb_prepare_tile(const OptimizerTile& tile, const LambScalars& scalars))
ZF_DECLARE_KERNEL(void lamb_update_tile(const OptimizerTile& tile, const LambScalars& scalars, float step_size))

}  // namespace zerofleet::cpu
