#include "kernels/optimizer/simd/lion.h"

#include "kernels/optimizer/simd/optimizer_sweep.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void lion_tile(const OptimizerTile& tile, const LionScalars& scalars) {
  const LionScalars k = scalars;
  sweep_tile<kWithStates<1>>(tile, [&k](Elements& e) {
    vf& m = e.states[0];
    const vf g = e.grad * k.grad_factor;
    const vf c = m + (g - m) * k.one_minus_beta1;
    m = flushed(m + (g - m) * k.one_minus_beta2);
    const vf change = select(c > zero(), set1(k.lr), select(c < zero(), set1(-k.lr), zero()));
    e.master = e.master * k.decay_factor - change;
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
