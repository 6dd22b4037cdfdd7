#include "kernels/optimizer/simd/sgd.h"

#include "kernels/optimizer/simd/optimizer_sweep.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

ZF_INLINE vf decayed_grad(const Elements& e, const SgdScalars& k) {
  return e.grad * k.grad_factor + e.master * k.weight_decay;
}

}  // namespace

void sgd_tile(const OptimizerTile& tile, const SgdScalars& scalars) {
  const SgdScalars k = scalars;
  sweep_tile<kWithStates<0>>(tile, [&k](Elements& e) { e.master = e.master - k.lr * decayed_grad(e, k); });
}

void sgd_momentum_tile(const OptimizerTile& tile, const SgdScalars& scalars) {
  const SgdScalars k = scalars;
  sweep_tile<kWithStates<1>>(tile, [&k](Elements& e) {
    vf& buffer = e.states[0];
    buffer = flushed(buffer * k.momentum + decayed_grad(e, k) * k.one_minus_dampening);
    e.master = e.master - k.lr * buffer;
  });
}

void sgd_nesterov_tile(const OptimizerTile& tile, const SgdScalars& scalars) {
  const SgdScalars k = scalars;
  sweep_tile<kWithStates<1>>(tile, [&k](Elements& e) {
    vf& buffer = e.states[0];
    const vf g = decayed_grad(e, k);
    buffer = flushed(buffer * k.momentum + g * k.one_minus_dampening);
    e.master = e.master - k.lr * (g + buffer * k.momentum);
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
