#include "kernels/moe/simd/moe.h"

#include "kernels/common/simd/exponentials.h"

namespace zerofleet::cpu::ZF_ISA_NS {
namespace {

template <class T>
ZF_INLINE void softmax(const T* logits, float* probs, int64_t count) {
  const vf factor = set1(1.0F / exponentials(logits, probs, count).sum);
  sweep(count, [&](int64_t i, auto part) { store(probs + i, load(probs + i, part) * factor, part); });
}

ZF_INLINE bool among(int32_t expert, const int32_t* experts, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (experts[i] == expert) return true;
  }
  return false;
}

/// The largest first, of equal ones the first; different experts also where probabilities are NaN.
ZF_INLINE void choose(const float* probs, int64_t num_experts, int32_t* experts, int64_t chosen) {
  for (int64_t choice = 0; choice < chosen; ++choice) {
    int32_t best = -1;
    for (int32_t expert = 0; expert < num_experts; ++expert) {
      if (among(expert, experts, choice)) continue;
      if (best < 0 || probs[expert] > probs[best]) best = expert;
    }
    experts[choice] = best;
  }
}

ZF_INLINE float chosen_sum(const float* probs, const int32_t* experts, int64_t chosen) {
  float sum = 0;
  for (int64_t choice = 0; choice < chosen; ++choice) sum += probs[experts[choice]];
  return sum;
}

template <class T>
void forward(const RouterArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    float* probs = args.probs + row * args.num_experts;
    int32_t* experts = args.experts + row * args.chosen;
    softmax(row_of<T>(args.logits, row), probs, args.num_experts);
    choose(probs, args.num_experts, experts, args.chosen);
    const float sum = args.shares ? chosen_sum(probs, experts, args.chosen) : 1.0F;
    for (int64_t choice = 0; choice < args.chosen; ++choice)
      args.weights[row * args.chosen + choice] = probs[experts[choice]] / sum;
  }
}

bool counts(const RouterArgs& args, int64_t token) {
  return args.lengths == nullptr || token % args.length < args.lengths[token / args.length];
}

// With s the sum of the chosen probabilities and w = p / s: dp = (dw − Σ dw · w) / s for the chosen. All probabilities
// of a token that counts get their term (dprobs) besides. Through the softmax dlogit = p · (dp − Σ p · dp). Weights
// that are no shares have dp = dw.
template <class T>
void backward(const RouterArgs& args) {
  for (int64_t row = 0; row < args.rows; ++row) {
    const float* dprobs = counts(args, args.first_token + row) ? args.dprobs : nullptr;
    const float* probs = args.probs + row * args.num_experts;
    const int32_t* experts = args.experts + row * args.chosen;
    const float* dweights = args.dweights + row * args.chosen;
    const float sum = args.shares ? chosen_sum(probs, experts, args.chosen) : 1.0F;
    float mean = 0;
    for (int64_t choice = 0; args.shares && choice < args.chosen; ++choice)
      mean += dweights[choice] * (probs[experts[choice]] / sum);
    sweep(args.num_experts, [&](int64_t i, auto part) {
      store(args.row + i, dprobs == nullptr ? zero() : load(dprobs + i, part), part);
    });
    for (int64_t choice = 0; choice < args.chosen; ++choice)
      args.row[experts[choice]] += (dweights[choice] - mean) / sum;
    vf products = zero();
    sweep(args.num_experts,
          [&](int64_t i, auto part) { products = fma(load(probs + i, part), load(args.row + i, part), products); });
    const vf total = set1(sum_lanes(products));
    T* dlogits = row_of<T>(args.dlogits, row);
    sweep(args.num_experts, [&](int64_t i, auto part) {
      store(dlogits + i, load(probs + i, part) * (load(args.row + i, part) - total), part);
    });
  }
}

template <class T>
void sum_rows(const ExpertRowsArgs& args) {
  for (int64_t token = 0; token < args.tokens; ++token) {
    T* sums = row_of<T>(args.sums, token);
    sweep(args.cols, [&](int64_t i, auto part) {
      vf sum = zero();
      for (int64_t choice = 0; choice < args.chosen; ++choice) {
        const int64_t pair = token * args.chosen + choice;
        const T* row = row_of<T>(args.rows, args.pair_rows[pair]);
        const float weight = args.weights == nullptr ? 1.0F : args.weights[pair];
        sum = fma(set1(weight), load(row + i, part), sum);
      }
      store(sums + i, sum, part);
    });
  }
}

template <class T>
void sum_rows_backward(const ExpertRowsArgs& args) {
  for (int64_t pair = 0; pair < args.tokens * args.chosen; ++pair) {
    const T* dsums = row_of<T>(args.dsums, pair / args.chosen);
    const T* row = row_of<T>(args.rows, args.pair_rows[pair]);
    T* drow = row_of<T>(args.drows, args.pair_rows[pair]);
    const vf weight = set1(args.weights[pair]);
    vf products = zero();
    sweep(args.cols, [&](int64_t i, auto part) {
      const vf dsum = load(dsums + i, part);
      products = fma(dsum, load(row + i, part), products);
      store(drow + i, weight * dsum, part);
    });
    args.dweights[pair] = sum_lanes(products);
  }
}

}  // namespace

void router_rows(const RouterArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { forward<T>(args); });
}

void router_backward_rows(const RouterArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { backward<T>(args); });
}

void sum_expert_rows(const ExpertRowsArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { sum_rows<T>(args); });
}

void sum_expert_rows_backward(const ExpertRowsArgs& args) {
  with_model_element(args.dtype, [&]<class T>(T*) { sum_rows_backward<T>(args); });
}

}  // namespace zerofleet::cpu::ZF_ISA_NS
