#include "kernels/cpu/simd/attention.h"

#include "kernels/cpu/simd/elements.h"
#include "kernels/cpu/simd/math.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
ZF_INLINE void zero_from(T* row, int64_t begin, int64_t end) {
  sweep(end - begin, [&](int64_t i, auto part) { store(row + begin + i, zero(), part); });
}

template <class T>
void softmax(const AttentionRowsArgs& args) {
  const vf scale = set1(args.scale);
  for (int64_t row = 0; row < args.rows; ++row) {
    float* scores = args.scores + row * args.scores_stride;
    T* probs = static_cast<T*>(args.probs) + row * args.probs_stride;
    const int64_t valid = args.first_valid + row;
    vf largest = set1(-__builtin_inff());
    sweep(valid, [&](int64_t i, auto part) {
      largest = max(within(load(scores + i, part), part, -__builtin_inff()), largest);
    });
    const float top = max_lanes(largest) * args.scale;
    vf sums = zero();
    sweep(valid, [&](int64_t i, auto part) {
      const vf e = exp(load(scores + i, part) * scale - set1(top));
      store(scores + i, e, part);
      sums += within(e, part, 0.0F);
    });
    const float sum = sum_lanes(sums);
    args.lse[row] = top + log(sum);
    const vf factor = set1(1.0F / sum);
    sweep(valid, [&](int64_t i, auto part) { store(probs + i, load(scores + i, part) * factor, part); });
    zero_from(probs, valid, args.padded);
  }
}

template <class T>
void backward(const AttentionRowsArgs& args) {
  const vf scale = set1(args.scale);
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* scores = args.scores + row * args.scores_stride;
    const float* dprobs = args.dprobs + row * args.scores_stride;
    T* probs = static_cast<T*>(args.probs) + row * args.probs_stride;
    T* dscores = static_cast<T*>(args.dscores) + row * args.probs_stride;
    const int64_t valid = args.first_valid + row;
    const vf lse = set1(args.lse[row]), delta = set1(args.delta[row]);
    sweep(valid, [&](int64_t i, auto part) {
      const vf p = exp(load(scores + i, part) * scale - lse);
      store(probs + i, p, part);
      store(dscores + i, p * (load(dprobs + i, part) - delta) * scale, part);
    });
    zero_from(probs, valid, args.padded);
    zero_from(dscores, valid, args.padded);
  }
}

template <class T>
void dots(const RowDotArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* a = static_cast<const T*>(args.a) + row * args.a_stride;
    const T* b = static_cast<const T*>(args.b) + row * args.b_stride;
    vf sums = zero();
    sweep(args.cols, [&](int64_t i, auto part) { sums = fma(load(a + i, part), load(b + i, part), sums); });
    args.dots[row] = sum_lanes(sums);
  }
}

}  // namespace

void attention_softmax_rows(const AttentionRowsArgs& args) {
  with_model_element(args.probs_dtype, [&]<class T>(T*) { softmax<T>(args); });
}

void attention_backward_rows(const AttentionRowsArgs& args) {
  with_model_element(args.probs_dtype, [&]<class T>(T*) { backward<T>(args); });
}

void row_dots(const RowDotArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { dots<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
