#include "kernels/optimizer/simd/adamw.h"

#include "kernels/optimizer/simd/optimizer_sweep.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void adamw_tile(const OptimizerTile& tile, const AdamWScalars& scalars) {
  const AdamWScalars k = scalars;
  sweep_tile<kWithStates<2>>(tile, [&k](Elements& e) {
    vf& m = e.states[0];
    vf& v = e.states[1];
    const vf g = e.grad * k.grad_factor;
    m = flushed(m + (g - m) * k.one_minus_beta1);
    v = flushed(v * k.beta2 + g * g * k.one_minus_beta2);
    const vf denominator = root(v) * k.inv_sqrt_correction2 + k.eps;
    e.master = e.master * k.decay_factor - k.step_size * m / denominator;
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
