#pragma once

#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/formulas/lamb.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

struct LambTileSums {
  double weights;
  double updates;
};

/// The first pass over a tile that is one block, a multiple of 32 elements: moves the moments and sums up squares.
ZF_DECLARE_KERNEL(LambTileSums lamb_prepare_tile(const OptimizerTile& tile, const LambScalars& scalars))

}  // namespace zerofleet::cpu
