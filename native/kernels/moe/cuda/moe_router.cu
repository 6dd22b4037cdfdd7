// The router of experts: a warp per token; and the terms of its auxiliary loss: a block per expert.
#include "core/device/context.h"
#include "kernels/common/cuda/block_sum.cuh"
#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/moe/moe_router.h"

namespace zerofleet::cuda {
namespace {

template <class T>
struct RouteForward {
  Rows<const T> logits;
  float* probs;
  std::int32_t* experts;
  float* weights;
  std::int64_t rows, chosen;
  int num_experts;
  bool shares;  // weights are shares of their sum
};

/// Lane l has the experts l, l + 32, l + 64 …
template <class T>
__device__ void softmax(const T* logits, float* probs, int num_experts) {
  float largest = -INFINITY;
  for (int e = lane_of_warp(); e < num_experts; e += 32) largest = fmaxf(largest, widened(logits[e]));
  for (int half = 16; half >= 1; half /= 2) largest = fmaxf(largest, __shfl_xor_sync(kWholeWarp, largest, half));
  float sum = 0;
  for (int e = lane_of_warp(); e < num_experts; e += 32) {
    probs[e] = expf(widened(logits[e]) - largest);
    sum = sum + probs[e];
  }
  const float factor = 1.0F / warp_sum(sum);
  for (int e = lane_of_warp(); e < num_experts; e += 32) probs[e] = probs[e] * factor;
  __syncwarp();  // all lanes see all probabilities
}

/// An expert in the order of choice: the largest probability first, of equal ones the lower number. A NaN comes last
/// (if there is one, all of a row are).
struct Candidate {
  float prob;
  int expert;
};

__device__ bool comes_before(const Candidate& a, const Candidate& b) {
  return a.prob > b.prob || (a.prob == b.prob && a.expert < b.expert);
}

/// The first expert that comes after `last`, in all lanes.
__device__ Candidate next_choice(const float* probs, int num_experts, const Candidate& last) {
  Candidate best{-2.0F, INT32_MAX};
  for (int e = lane_of_warp(); e < num_experts; e += 32) {
    const Candidate here{probs[e] >= 0.0F ? probs[e] : -1.0F, e};
    if (comes_before(last, here) && comes_before(here, best)) best = here;
  }
  for (int half = 16; half >= 1; half /= 2) {
    const Candidate other{__shfl_xor_sync(kWholeWarp, best.prob, half), __shfl_xor_sync(kWholeWarp, best.expert, half)};
    if (comes_before(other, best)) best = other;
  }
  return best;
}

template <class T>
__global__ void __launch_bounds__(kWarpThreads) route_kernel(const RouteForward<T> a) {
  const std::int64_t row = warp_of_grid();
  if (row >= a.rows) return;
  float* probs = a.probs + row * a.num_experts;
  softmax(a.logits.row(row), probs, a.num_experts);
  std::int32_t* experts = a.experts + row * a.chosen;
  float* weights = a.weights + row * a.chosen;
  Candidate last{INFINITY, -1};
  float sum = 0;
  for (std::int64_t choice = 0; choice < a.chosen; ++choice) {
    last = next_choice(probs, a.num_experts, last);
    if (lane_of_warp() != 0) continue;
    experts[choice] = last.expert;
    weights[choice] = probs[last.expert];
    sum = sum + probs[last.expert];
  }
  if (lane_of_warp() != 0 || !a.shares) return;
  for (std::int64_t choice = 0; choice < a.chosen; ++choice) weights[choice] = weights[choice] / sum;
}

/// Tokens that count in the auxiliary loss: the first lengths[b] of the `length` ones of sequence b.
struct Counted {
  const std::int32_t* lengths;  // or null: all
  std::int64_t length;
  __device__ bool has(std::int64_t token) const {
    return lengths == nullptr || token % length < lengths[token / length];
  }
};

Counted counted_of(const Indices& lengths, std::int64_t num_tokens) {
  if (lengths.empty()) return {nullptr, num_tokens};
  return {lengths.on_device(), num_tokens / static_cast<std::int64_t>(lengths.size())};
}

template <class T>
struct RouteBackward {
  const float* probs;
  const std::int32_t* experts;
  const float *dweights, *dprobs;  // dprobs: or null
  Rows<T> dlogits;
  std::int64_t rows, chosen;
  int num_experts;
  Counted counted;
  bool shares;
};

// With s the sum of the chosen probabilities and w = p / s: dp = (dw − Σ dw · w) / s for the chosen. All probabilities
// of a token that counts get their term (dprobs) besides. Through the softmax dlogit = p · (dp − Σ p · dp). Weights
// that are no shares have dp = dw.
template <class T>
__global__ void __launch_bounds__(kWarpThreads) route_backward_kernel(const RouteBackward<T> a) {
  const std::int64_t row = warp_of_grid();
  if (row >= a.rows) return;
  const float *probs = a.probs + row * a.num_experts, *dweights = a.dweights + row * a.chosen;
  const std::int32_t* experts = a.experts + row * a.chosen;
  const std::int64_t summed = a.shares ? a.chosen : 0;
  float sum = a.shares ? 0.0F : 1.0F, mean = 0;
  for (std::int64_t choice = 0; choice < summed; ++choice) sum = sum + probs[experts[choice]];
  for (std::int64_t choice = 0; choice < summed; ++choice)
    mean = mean + dweights[choice] * (probs[experts[choice]] / sum);
  const float* dprobs = a.counted.has(row) ? a.dprobs : nullptr;
  const auto dprob = [&](int expert) {
    float value = dprobs == nullptr ? 0.0F : dprobs[expert];
    for (std::int64_t choice = 0; choice < a.chosen; ++choice) {
      if (experts[choice] == expert) value = value + (dweights[choice] - mean) / sum;
    }
    return value;
  };
  float products = 0;
  for (int e = lane_of_warp(); e < a.num_experts; e += 32) products = fmaf(probs[e], dprob(e), products);
  const float total = warp_sum(products);
  T* dlogits = a.dlogits.row(row);
  for (int e = lane_of_warp(); e < a.num_experts; e += 32) dlogits[e] = narrowed<T>(probs[e] * (dprob(e) - total));
}

struct Load {
  const float* probs;           // (num_tokens, E)
  const std::int32_t* experts;  // (num_tokens, chosen)
  std::int64_t num_tokens, chosen;
  Counted counted;
};

// The sum has one order: a thread's tokens, the lanes of a warp by halves, the warps.
__global__ void __launch_bounds__(kWarpThreads) load_kernel(const Load a, std::int64_t* choices, double* sums) {
  __shared__ double parts[kWarpThreads / 32], counts[kWarpThreads / 32];
  const unsigned expert = blockIdx.x;
  double sum = 0, count = 0;  // counts are exact
  ZF_DEVICE_UNROLL(8)
  for (std::int64_t token = threadIdx.x; token < a.num_tokens; token += kWarpThreads) {
    if (!a.counted.has(token)) continue;
    sum = sum + static_cast<double>(a.probs[token * gridDim.x + expert]);
    for (std::int64_t choice = 0; choice < a.chosen; ++choice) {
      count = count + (a.experts[token * a.chosen + choice] == static_cast<int>(expert) ? 1.0 : 0.0);
    }
  }
  sum = folded_by_halves(sum);
  count = folded_by_halves(count);
  if (lane_of_warp() == 0) {
    parts[threadIdx.x / 32] = sum;
    counts[threadIdx.x / 32] = count;
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  double total = sums[expert], number = 0;
  for (int warp = 0; warp < kWarpThreads / 32; ++warp) {
    total = total + parts[warp];
    number = number + counts[warp];
  }
  sums[expert] = total;
  choices[expert] += static_cast<std::int64_t>(number);
}

/// In the order of the CPU's arithmetic.
__global__ void __launch_bounds__(kWarpThreads)
    load_gradient_kernel(const std::int64_t* choices, int num_experts, double factor, double num_tokens,
                         float* gradient) {
  const int expert = static_cast<int>(blockIdx.x) * kWarpThreads + static_cast<int>(threadIdx.x);
  if (expert >= num_experts) return;
  gradient[expert] = static_cast<float>(factor * static_cast<double>(choices[expert]) / num_tokens / num_tokens);
}

unsigned num_blocks(std::int64_t rows, std::int64_t num_experts) {
  require(num_experts <= INT32_MAX / 2, "invalid_argument", "router: too many experts");
  return num_blocks_for(rows, kWarpThreads / 32);
}

}  // namespace

void route(const Context& ctx, const RouterForward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.logits.rows == 0) return;
  with_element(args.logits.dtype, [&]<class T>(T*) {
    const RouteForward<T> a{rows_of<T>(args.logits),
                            args.probs.data(),
                            args.experts.data(),
                            args.weights.data(),
                            args.logits.rows,
                            args.experts_per_token,
                            static_cast<int>(args.logits.cols),
                            args.shares};
    launch("route", stream, {num_blocks(a.rows, args.logits.cols), kWarpThreads}, route_kernel<T>, a);
  });
}

void route_backward(const Context& ctx, const RouterBackward& args) {
  const Stream& stream = stream_of(ctx);
  if (args.dlogits.rows == 0) return;
  with_element(args.dlogits.dtype, [&]<class T>(T*) {
    const RouteBackward<T> a{args.probs.data(),
                             args.experts.data(),
                             args.dweights.data(),
                             args.dprobs.data(),
                             rows_of<T>(args.dlogits),
                             args.dlogits.rows,
                             args.experts_per_token,
                             static_cast<int>(args.dlogits.cols),
                             counted_of(args.lengths, args.dlogits.rows),
                             args.shares};
    launch("route_backward", stream, {num_blocks(a.rows, args.dlogits.cols), kWarpThreads}, route_backward_kernel<T>,
           a);
  });
}

void add_router_load(const Context& ctx, const RouterChoices& chosen, const RouterSums& sums) {
  const Stream& stream = stream_of(ctx);
  const auto num_tokens = static_cast<std::int64_t>(chosen.probs.size() / sums.probs.size());
  if (num_tokens == 0) return;
  const Load load{chosen.probs.data(), chosen.experts.data(), num_tokens,
                  static_cast<std::int64_t>(chosen.experts.size()) / num_tokens,
                  counted_of(chosen.lengths, num_tokens)};
  const unsigned num_experts = num_blocks_for(static_cast<std::int64_t>(sums.probs.size()), 1);
  launch("add_router_load", stream, {num_experts, kWarpThreads}, load_kernel, load, sums.choices.data(),
         sums.probs.data());
}

void load_balancing_gradient(const Context& ctx, std::span<const std::int64_t> choices, double num_tokens, double scale,
                             std::span<float> gradient) {
  const Stream& stream = stream_of(ctx);
  if (gradient.empty()) return;
  const auto num_experts = static_cast<std::int64_t>(gradient.size());
  launch("load_balancing_gradient", stream, {num_blocks_for(num_experts, kWarpThreads), kWarpThreads},
         load_gradient_kernel, choices.data(), static_cast<int>(num_experts), scale * static_cast<double>(num_experts),
         num_tokens, gradient.data());
}

}  // namespace zerofleet::cuda
