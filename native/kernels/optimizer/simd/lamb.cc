#include "kernels/optimizer/simd/lamb.h"

#include "kernels/common/simd/block_sums.h"
#include "kernels/optimizer/simd/optimizer_sweep.h"

namespace zerofleet::cpu::ZF_ISA_NS {

LambTileSums lamb_prepare_tile(const OptimizerTile& tile, const LambScalars& scalars) {
  const LambScalars k = scalars;
  SquareSums weights, updates;
  for (int64_t i = 0; i < tile.numel; i += 32) {
    for (int64_t line = i; line < i + 32; line += kLine) prefetch_line<ElementUpdate<2>>(tile, line);
    alignas(64) float update[32];
    for (int64_t j = 0; j < 32; j += kLanes) {
      Elements e;
      e.master = load(tile.master + i + j);
      e.states[0] = load(tile.states[0] + i + j);
      e.states[1] = load(tile.states[1] + i + j);
      e.grad = load(tile.grad + i + j);
      move_lamb_moments<VectorArithmetic>(e, k);
      store(tile.states[0] + i + j, e.states[0]);
      store(tile.states[1] + i + j, e.states[1]);
      store(update + j, raw_lamb_update<VectorArithmetic>(e, k));
    }
    add_squares_of_32(weights, tile.master + i);
    add_squares_of_32(updates, update);
  }
  return {folded(weights), folded(updates)};
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
