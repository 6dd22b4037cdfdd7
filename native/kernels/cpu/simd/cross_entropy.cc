#include "kernels/cpu/simd/cross_entropy.h"

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/math.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

/// Replaces the logits of one row by exp(logit − max); returns {max, sum}.
struct Softmax {
  float max;
  float sum;
};

ZF_INLINE Softmax exponentials(float* logits, int64_t cols) {
  vf largest = set1(-__builtin_inff());
  sweep(cols,
        [&](int64_t i, auto part) { largest = max(within(load(logits + i, part), part, -__builtin_inff()), largest); });
  const float top = max_lanes(largest);
  vf sums = zero();
  sweep(cols, [&](int64_t i, auto part) {
    const vf e = exp(load(logits + i, part) - set1(top));
    store(logits + i, e, part);
    sums += within(e, part, 0.0F);
  });
  return {top, sum_lanes(sums)};
}

// The gradient may lie over the logits: an element of it never stands behind the logit that it is made from.
template <class T>
void gradient(const CrossEntropyArgs& args, int64_t row, const Softmax& softmax) {
  const float* e = args.logits + row * args.logits_stride;
  T* dlogits = static_cast<T*>(args.dlogits) + row * args.dlogits_stride;
  const int32_t target = args.targets[row];
  if (target < 0) {
    sweep(args.cols, [&](int64_t i, auto part) { store(dlogits + i, zero(), part); });
    return;
  }
  const float factor = args.grad_scale / softmax.sum;
  const float at_target = e[target] * factor - args.grad_scale;
  sweep(args.cols, [&](int64_t i, auto part) { store(dlogits + i, load(e + i, part) * set1(factor), part); });
  store_first(dlogits + target, set1(at_target), 1);
}

}  // namespace

void cross_entropy_rows(const CrossEntropyArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    float* logits = args.logits + row * args.logits_stride;
    const int32_t target = args.targets[row];
    const float of_target = target < 0 ? 0.0F : logits[target];
    const Softmax softmax = target < 0 ? Softmax{0, 1} : exponentials(logits, args.cols);
    args.losses[row] = target < 0 ? 0.0F : (softmax.max - of_target) + log(softmax.sum);
    if (args.dlogits == nullptr) continue;
    with_model_element(args.dlogits_dtype, [&]<class T>(T*) { gradient<T>(args, row, softmax); });
  }
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
