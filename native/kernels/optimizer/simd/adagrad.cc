#include "kernels/optimizer/simd/adagrad.h"

#include "kernels/optimizer/simd/optimizer_sweep.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void adagrad_tile(const OptimizerTile& tile, const AdagradScalars& scalars) {
  const AdagradScalars k = scalars;
  sweep_tile<kWithStates<1>>(tile, [&k](Elements& e) {
    vf& sum = e.states[0];
    const vf g = e.grad * k.grad_factor + e.master * k.weight_decay;
    sum = flushed(sum + g * g);
    e.master = e.master - k.step_size * g / (root(sum) + k.eps);
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
