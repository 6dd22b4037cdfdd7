#pragma once

#include "kernels/common/simd/declare.h"
#include "kernels/optimizer/simd/optimizer_tile.h"

namespace zerofleet::cpu {

/// Runs an update over a tile: that which is number `update` of OptimizerUpdates, with its `scalars`, a pointer to its
/// Scalars.
ZF_DECLARE_KERNEL(void update_tile(int update, const OptimizerTile& tile, const void* scalars))

}  // namespace zerofleet::cpu
