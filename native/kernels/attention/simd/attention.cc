#include "kernels/attention/simd/attention.h"

#include "kernels/common/formulas/soft_cap.h"
#include "kernels/common/simd/arithmetic.h"
#include "kernels/common/simd/elements.h"
#include "kernels/common/simd/math.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
ZF_INLINE void zero_from(T* row, int64_t begin, int64_t end) {
  sweep(end - begin, [&](int64_t i, auto part) { store(row + begin + i, zero(), part); });
}

struct Visible {
  int64_t begin, end;
};

/// The keys of the block that a row sees.
ZF_INLINE Visible visible(const AttentionRowsArgs& args, int64_t row) {
  const int64_t end = args.first_valid + row < args.keys ? args.first_valid + row : args.keys;
  if (args.first_keys == nullptr) return {0, end};
  const int64_t begin = args.first_keys[row] - args.first_key;
  return {begin < 0 ? 0 : begin < end ? begin : end, end};
}

template <class T>
ZF_INLINE void zero_outside(T* row, Visible keys, int64_t padded) {
  zero_from(row, 0, keys.begin);
  zero_from(row, keys.end, padded);
}

/// Moves the row's sums on from the old to the new largest score.
ZF_INLINE void rescale(const AttentionRowsArgs& args, int64_t row, float factor) {
  float* sums = args.sums + row * args.sums_cols;
  sweep(args.sums_cols, [&](int64_t i, auto part) { store(sums + i, load(sums + i, part) * set1(factor), part); });
}

/// Scaled and capped scores take the place of a row's scores.
ZF_INLINE void cap_scores(const AttentionRowsArgs& args, float* scores, int64_t count) {
  sweep(count, [&](int64_t i, auto part) {
    store(scores + i, soft_capped<VectorArithmetic>(load(scores + i, part) * set1(args.scale), args.soft_cap), part);
  });
}

template <class T>
void softmax(const AttentionRowsArgs& args) {
  const float factor_of_scores = args.soft_cap == 0 ? args.scale : 1.0F;
  const vf scale = set1(factor_of_scores);
  for (int64_t row = 0; row < args.rows; ++row) {
    T* probs = static_cast<T*>(args.probs) + row * args.probs_stride;
    const Visible keys = visible(args, row);
    zero_outside(probs, keys, args.padded);
    float* scores = args.scores + row * args.scores_stride + keys.begin;
    const int64_t count = keys.end - keys.begin;
    if (count == 0) continue;
    if (args.soft_cap != 0) cap_scores(args, scores, count);
    vf largest = set1(-__builtin_inff());
    sweep(count, [&](int64_t i, auto part) {
      largest = max(within(load(scores + i, part), part, -__builtin_inff()), largest);
    });
    const float before = args.top[row], here = max_lanes(largest) * factor_of_scores;
    const float top = here > before ? here : before;
    vf sums = zero();
    sweep(count, [&](int64_t i, auto part) {
      const vf e = exp(load(scores + i, part) * scale - set1(top));
      store(probs + keys.begin + i, e, part);
      sums += within(e, part, 0.0F);
    });
    const float factor = before == top ? 1.0F : exp(set1(before - top))[0];
    if (factor != 1.0F) rescale(args, row, factor);
    args.top[row] = top;
    args.total[row] = args.total[row] * factor + sum_lanes(sums);
  }
}

template <class T>
void finish(const AttentionFinishArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* sums = args.sums + row * args.cols;
    T* out = row_of<T>(args.out, row);
    const vf factor = set1(1.0F / args.total[row]);
    sweep(args.cols, [&](int64_t i, auto part) { store(out + i, load(sums + i, part) * factor, part); });
    args.lse[row] = args.top[row] + log(args.total[row]);
  }
}

template <class T>
void backward(const AttentionRowsArgs& args) {
  const bool capped = args.soft_cap != 0;
  const vf scale = set1(capped ? 1.0F : args.scale);
  for (int64_t row = 0; row < args.rows; ++row) {
    float* scores = args.scores + row * args.scores_stride;
    const float* dprobs = args.dprobs + row * args.scores_stride;
    T* probs = static_cast<T*>(args.probs) + row * args.probs_stride;
    T* dscores = static_cast<T*>(args.dscores) + row * args.probs_stride;
    const Visible keys = visible(args, row);
    const vf lse = set1(args.lse[row]), delta = set1(args.delta[row]);
    const int64_t count = keys.end - keys.begin;
    if (capped) cap_scores(args, scores + keys.begin, count);
    sweep(count, [&](int64_t i, auto part) {
      const int64_t key = keys.begin + i;
      const vf score = load(scores + key, part), p = exp(score * scale - lse);
      store(probs + key, p, part);
      const vf dscore = p * (load(dprobs + key, part) - delta);
      const vf factor =
          capped ? soft_cap_slope<VectorArithmetic>(score, args.soft_cap) * set1(args.scale) : set1(args.scale);
      store(dscores + key, dscore * factor, part);
    });
    zero_outside(probs, keys, args.padded);
    zero_outside(dscores, keys, args.padded);
  }
}

template <class T>
void dots(const RowDotArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const T* a = row_of<T>(args.a, row);
    const T* b = row_of<T>(args.b, row);
    vf sums = zero();
    sweep(args.cols, [&](int64_t i, auto part) { sums = fma(load(a + i, part), load(b + i, part), sums); });
    args.dots[row] = sum_lanes(sums);
  }
}

}  // namespace

void attention_softmax_rows(const AttentionRowsArgs& args) {
  with_model_element(args.probs_dtype, [&]<class T>(T*) { softmax<T>(args); });
}

void attention_finish_rows(const AttentionFinishArgs& args) {
  with_model_element(args.out_dtype, [&]<class T>(T*) { finish<T>(args); });
}

void attention_backward_rows(const AttentionRowsArgs& args) {
  with_model_element(args.probs_dtype, [&]<class T>(T*) { backward<T>(args); });
}

void row_dots(const RowDotArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { dots<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
