#include "kernels/loss/simd/cross_entropy.h"

#include "kernels/common/simd/exponentials.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

// The gradient may lie over the logits: an element of it never stands behind the logit that it is made from.
template <class T>
void gradient(const CrossEntropyArgs& args, int64_t row, const Exponentials& softmax) {
  const float* e = args.logits + row * args.logits_stride;
  T* dlogits = row_of<T>(args.dlogits, row);
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
    const Exponentials softmax = target < 0 ? Exponentials{0, 1} : exponentials(logits, logits, args.cols);
    args.losses[row] = target < 0 ? 0.0F : (softmax.largest - of_target) + log(softmax.sum);
    if (args.dlogits.data == nullptr) continue;
    with_model_element(args.dlogits_dtype, [&]<class T>(T*) { gradient<T>(args, row, softmax); });
  }
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
