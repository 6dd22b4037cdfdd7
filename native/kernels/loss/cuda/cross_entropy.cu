// Softmax cross-entropy: a block per row. The block reads the row twice: for the largest logit and the sum
// together, and for the gradient, which it writes once. So a row moves (4 + 4 + bytes of a gradient's element) · V
// bytes.
#include "core/device/context.h"
#include "kernels/common/cuda/arithmetic.h"
#include "kernels/common/cuda/block_sum.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/common/formulas/soft_cap.h"
#include "kernels/loss/cross_entropy.h"

namespace zerofleet::cuda {
namespace {

constexpr int kLossThreads = 512;
constexpr int kLogits = 4;   // logits of an access
constexpr int kVectors = 2;  // accesses of a thread that are in progress at once
constexpr std::int64_t kAccess = std::int64_t{kLossThreads} * kLogits;
constexpr std::int64_t kLogitTile = kAccess * kVectors;
// Finite, so that infinity is never subtracted from itself.
constexpr float kLowestLogit = -3.402823466e+38F;

template <class T>
struct LossArguments {
  Rows<float> logits;
  const std::int32_t* targets;
  float* losses;
  Rows<T> dlogits;
  float grad_scale, soft_cap;
  const float* factors;  // of rows, or null: 1
  std::int64_t cols;
  bool aligned, gradient_aligned;
};

/// `sum` of exp(logit − largest).
struct Softmax {
  float largest, sum;
};

/// Combines both; the same bits in either order.
__device__ Softmax joined(const Softmax& a, const Softmax& b) {
  const float largest = fmaxf(a.largest, b.largest);  // a NaN is passed over here, and is in the sum
  return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

template <class T>
__device__ Softmax softmax_of_thread(const LossArguments<T>& a, const float* logits) {
  Softmax softmax{kLowestLogit, 0};
  for (std::int64_t tile = 0; tile < a.cols; tile += kLogitTile) {
    Lanes<kLogits> x[kVectors];
    float largest = softmax.largest;
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const auto at = columns_from<kLogits>(tile + i * kAccess + threadIdx.x * kLogits, a.cols, a.aligned);
      x[i] = load(logits, at, -INFINITY);
#pragma unroll
      for (int k = 0; k < kLogits; ++k) largest = fmaxf(largest, x[i].v[k]);
    }
    float sum = softmax.sum * expf(softmax.largest - largest);
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
#pragma unroll
      for (int k = 0; k < kLogits; ++k) sum = sum + expf(x[i].v[k] - largest);
    }
    softmax = {largest, sum};
  }
  return softmax;
}

/// Combines the block's row: each warp by halves, then the warps in order; every thread gets the result.
__device__ Softmax joined_over_block(Softmax softmax) {
  __shared__ Softmax parts[kLossThreads / 32];
  for (int half = 16; half >= 1; half /= 2) {
    softmax = joined(
        softmax, {__shfl_xor_sync(kWholeWarp, softmax.largest, half), __shfl_xor_sync(kWholeWarp, softmax.sum, half)});
  }
  if (lane_of_warp() == 0) parts[threadIdx.x / 32] = softmax;
  __syncthreads();
  softmax = parts[0];
  for (int warp = 1; warp < kLossThreads / 32; ++warp) softmax = joined(softmax, parts[warp]);
  return softmax;
}

// The gradient may lie over the logits. An element of the gradient is at most as long as a logit, so a tile's gradient
// lies over logits of this tile and earlier ones. A tile is written when all threads have read it, and after the loads
// of the next tile were issued.
template <class T>
__device__ void write_gradient(const LossArguments<T>& a, const float* logits, T* dlogits, const Softmax& softmax,
                               std::int64_t target, float grad_scale) {
  const auto columns = [&](std::int64_t tile, int i, bool aligned) {
    return columns_from<kLogits>(tile + i * kAccess + threadIdx.x * kLogits, a.cols, aligned);
  };
  const float factor = grad_scale / softmax.sum;
  Lanes<kLogits> x[kVectors], next[kVectors];
#pragma unroll
  for (int i = 0; i < kVectors; ++i) next[i] = load(logits, columns(0, i, a.aligned));
  for (std::int64_t tile = 0; tile < a.cols; tile += kLogitTile) {
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      x[i] = next[i];
      next[i] = load(logits, columns(tile + kLogitTile, i, a.aligned));
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < kVectors; ++i) {
      const auto at = columns(tile, i, a.gradient_aligned);
      const Lanes<kLogits> gradient = lanes<kLogits>([&](int k) {
        const float all = expf(x[i].v[k] - softmax.largest) * factor;
        const float own = at.first + k == target ? all - grad_scale : all;
        return a.soft_cap == 0 ? own : own * soft_cap_slope<FloatArithmetic>(x[i].v[k], a.soft_cap);
      });
      store(dlogits, at, gradient);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kLossThreads) loss_kernel(const LossArguments<T> a) {
  const std::int64_t row = blockIdx.x, target = a.targets[row];
  if (target < 0) {  // the row does not count
    if (threadIdx.x == 0) a.losses[row] = 0;
    if (a.dlogits.data == nullptr) return;
    T* dlogits = a.dlogits.row(row);
    for (std::int64_t i = threadIdx.x * kLogits; i < a.cols; i += kAccess) {
      store(dlogits, columns_from<kLogits>(i, a.cols, a.gradient_aligned), Lanes<kLogits>{});
    }
    return;
  }
  const float* logits = a.logits.row(row);
  const Softmax softmax = joined_over_block(softmax_of_thread(a, logits));
  if (threadIdx.x == 0) a.losses[row] = (softmax.largest - logits[target]) + logf(softmax.sum);
  if (a.dlogits.data == nullptr) return;
  const float grad_scale = a.factors == nullptr ? a.grad_scale : a.factors[row] * a.grad_scale;
  write_gradient(a, logits, a.dlogits.row(row), softmax, target, grad_scale);
}

}  // namespace

void cross_entropy(const Context& ctx, const CrossEntropy& args) {
  const Stream& stream = stream_of(ctx);
  if (args.logits.rows == 0) return;
  with_element(args.dlogits.data == nullptr ? DType::kF32 : args.dlogits.dtype, [&]<class T>(T*) {
    const LossArguments<T> a{rows_of<float>(args.logits),
                             args.targets.on_device(),
                             args.losses.data(),
                             rows_of<T>(args.dlogits),
                             args.grad_scale,
                             args.soft_cap,
                             args.factors.empty() ? nullptr : args.factors.data(),
                             args.logits.cols,
                             rows_aligned_for<kLogits>(args.logits),
                             rows_aligned_for<kLogits>(args.dlogits)};
    launch("cross_entropy", stream, {num_blocks_for(args.logits.rows, 1), kLossThreads}, loss_kernel<T>, a);
  });
}

}  // namespace zerofleet::cuda
