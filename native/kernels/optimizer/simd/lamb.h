#pragma once

#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/lamb_scalars.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

struct LambTileSums {
  double weights;
  double updates;
};

// See kernels/optimizer/lamb.h for the arithmetic. The tile of the first pass is one block, a multiple of 32 elements.
ZF_DECLARE_KERNEL(LambTileSums lamb_prepare_tile(const OptimizerTile& tile, const LambScalars& scalars))
ZF_DECLARE_KERNEL(void lamb_update_tile(const OptimizerTile& tile, const LambScalars& scalars, float step_size))

}  // namespace zerofleet::cpu
