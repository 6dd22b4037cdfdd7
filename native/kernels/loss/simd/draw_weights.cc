#include "kernels/loss/simd/draw_weights.h"

#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/math.h"

namespace zerofleet::cpu::ZF_ISA_NS {

void draw_weights(const DrawWeightsArgs& args) {
  const vf largest = set1(args.largest), factor = set1(args.factor);
  sweep(args.count, [&](int64_t i, auto part) {
    store(args.weights + i, exp((load(args.logits + i, part) - largest) * factor), part);
  });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
