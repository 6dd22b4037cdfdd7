#include "kernels/optimizer/simd/lamb.h"

#include "kernels/common/simd/block_sums.h"
#include "kernels/optimizer/simd/optimizer_sweep.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

ZF_INLINE vf raw_update(vf master, vf m, vf v, const LambScalars& k) {
  const vf denominator = root(v) * k.inv_sqrt_correction2 + k.eps;
  return (m * k.inv_correction1) / denominator + master * k.weight_decay;
}

}  // namespace

LambTileSums lamb_prepare_tile(const OptimizerTile& tile, const LambScalars& scalars) {
  const LambScalars k = scalars;
  SquareSums weights, updates;
  for (int64_t i = 0; i < tile.numel; i += 32) {
    for (int64_t line = i; line < i + 32; line += kLine) prefetch_line<SweepArrays{2}>(tile, line);
    alignas(64) float update[32];
    for (int64_t j = 0; j < 32; j += kLanes) {
      const vf g = load(tile.grad + i + j) * k.grad_factor;
      vf m = load(tile.states[0] + i + j);
      vf v = load(tile.states[1] + i + j);
      m = flushed(m + (g - m) * k.one_minus_beta1);
      v = flushed(v * k.beta2 + g * g * k.one_minus_beta2);
      store(tile.states[0] + i + j, m);
      store(tile.states[1] + i + j, v);
      store(update + j, raw_update(load(tile.master + i + j), m, v, k));
    }
    add_squares_of_32(weights, tile.master + i);
    add_squares_of_32(updates, update);
  }
  return {folded(weights), folded(updates)};
}

void lamb_update_tile(const OptimizerTile& tile, const LambScalars& scalars, float step_size) {
  const LambScalars k = scalars;
  constexpr SweepArrays kArrays{.num_states = 2, .reads_grad = false, .writes_states = false};
  sweep_tile<kArrays>(tile, [&k, step_size](Elements& e) {
    e.master = e.master - step_size * raw_update(e.master, e.states[0], e.states[1], k);
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
