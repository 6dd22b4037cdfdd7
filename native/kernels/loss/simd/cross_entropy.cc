#include "kernels/loss/simd/cross_entropy.h"

#include "kernels/common/formulas/soft_cap.h"
#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/exponentials.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

float grad_scale_of(const CrossEntropyArgs& args, int64_t row) {
  return args.factors == nullptr ? args.grad_scale : args.factors[row] * args.grad_scale;
}

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
  const float grad_scale = grad_scale_of(args, row);
  const float factor = grad_scale / softmax.sum;
  const float at_target = e[target] * factor - grad_scale;
  sweep(args.cols, [&](int64_t i, auto part) { store(dlogits + i, load(e + i, part) * set1(factor), part); });
  store_first(dlogits + target, set1(at_target), 1);
}

// The same by the capped logits, which are still there.
template <class T>
void capped_gradient(const CrossEntropyArgs& args, int64_t row, const Exponentials& softmax) {
  const float* logits = args.logits + row * args.logits_stride;
  T* dlogits = row_of<T>(args.dlogits, row);
  const int32_t target = args.targets[row];
  const float grad_scale = grad_scale_of(args, row);
  const vf factor = set1(grad_scale / softmax.sum), largest = set1(softmax.largest);
  const auto gradient_of = [&](vf logit, vf less) {
    return (exp(logit - largest) * factor - less) * soft_cap_slope<VectorArithmetic>(logit, args.soft_cap);
  };
  const vf at_target = gradient_of(set1(logits[target]), set1(grad_scale));
  sweep(args.cols,
        [&](int64_t i, auto part) { store(dlogits + i, gradient_of(load(logits + i, part), zero()), part); });
  store_first(dlogits + target, at_target, 1);
}

}  // namespace

void cross_entropy_rows(const CrossEntropyArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    float* logits = args.logits + row * args.logits_stride;
    const int32_t target = args.targets[row];
    const float of_target = target < 0 ? 0.0F : logits[target];
    const bool capped = args.soft_cap != 0;
    const Exponentials softmax =
        target < 0 ? Exponentials{0, 1} : exponentials(logits, capped ? nullptr : logits, args.cols);
    args.losses[row] = target < 0 ? 0.0F : (softmax.largest - of_target) + log(softmax.sum);
    if (args.dlogits.data == nullptr) continue;
    with_model_element(args.dlogits_dtype, [&]<class T>(T*) {
      capped&& target >= 0 ? capped_gradient<T>(args, row, softmax) : gradient<T>(args, row, softmax);
    });
  }
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
