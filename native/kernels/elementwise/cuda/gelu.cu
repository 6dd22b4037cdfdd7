// GELU: 16 bytes of each matrix a thread, one pass over memory.
#include "kernels/common/cuda/elementary.cuh"
#include "kernels/common/cuda/launch_grid.cuh"
#include "kernels/common/cuda/row_vector.cuh"
#include "kernels/elementwise/cuda/launch.h"
#include "kernels/elementwise/gelu.h"

namespace zerofleet::cuda {
namespace {

/// Beyond ±15, Φ and its derivative are 0 or 1 in fp32; inside, no intermediate value leaves its range. A NaN stays
/// one.
__device__ float bounded(float x) { return x < -15.0F ? -15.0F : x > 15.0F ? 15.0F : x; }

struct Normal {
  float distribution;  // Φ(x)
  float density;       // φ(x) = exp(−x² / 2) / sqrt(2π), the derivative of Φ
};

/// As on the CPU: with u = |x| / sqrt(2), Φ(−|x|) = exp(−u²) · erfcx(u) / 2, which loses no digits far from 0, and
/// erfcx(u) = (1 − t) · q(t), t = (u − 3) / (u + 3). Where q is from: kernels/elementwise/simd/gelu.cc.
__device__ Normal normal(float x) {
  const float in = bounded(x), u = fabsf(in) * 0.707106781186547524F;
  const float share = 6.0F / (u + 3.0F);  // 1 − t
  const float t = 1.0F - share;
  float q = -5.38097993e-05F;
  q = fmaf(q, t, -7.97401444e-05F);
  q = fmaf(q, t, 0.000513543142F);
  q = fmaf(q, t, -0.000204826763F);
  q = fmaf(q, t, -0.00447345991F);
  q = fmaf(q, t, 0.0199215841F);
  q = fmaf(q, t, -0.0517443083F);
  q = fmaf(q, t, 0.0983713791F);
  q = fmaf(q, t, -0.147232413F);
  q = fmaf(q, t, 0.179001153F);
  const float e = expf(in * in * -0.5F), tail = 0.5F * e * share * q;
  return {in < 0.0F ? tail : 1.0F - tail, e * 0.398942280401432678F};
}

// x / 2 · (1 + tanh(v)) = x · sigmoid(2v), with 2v = a · x · (1 + b · x²).
constexpr float kA = 1.59576912160573071F;  // 2 · sqrt(2 / π)
constexpr float kB = 0.044715F;

__device__ float tanh_gate(float in) { return sigmoid(kA * in * fmaf(kB * in, in, 1.0F)); }

template <GeluKind kKind>
__device__ float gelu_of(float x) {
  if constexpr (kKind == GeluKind::kExact) {
    return x * normal(x).distribution;
  } else {
    return x * tanh_gate(bounded(x));
  }
}

template <GeluKind kKind>
__device__ float slope_of(float x) {
  const float in = bounded(x);
  if constexpr (kKind == GeluKind::kExact) {
    const Normal at = normal(x);
    return fmaf(in, at.density, at.distribution);
  } else {
    const float s = tanh_gate(in), slope = kA * fmaf(3.0F * kB * in, in, 1.0F);  // slope: of 2v
    return fmaf(in * s * (1.0F - s), slope, s);
  }
}

template <GeluKind kKind, class T>
__global__ void __launch_bounds__(kSweepThreads)
    gelu_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> x, const Rows<T> y) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const Lanes<N> in = load(x.row(row), at);
    store(y.row(row), at, lanes<N>([&](int k) { return gelu_of<kKind>(in.v[k]); }));
  });
}

template <GeluKind kKind, class T>
__global__ void __launch_bounds__(kSweepThreads)
    gelu_backward_kernel(const Sweep<kWidth<T>> sweep, const Rows<const T> x, const Rows<const T> dy,
                         const Rows<T> dx) {
  constexpr int N = kWidth<T>;
  sweep.of_thread([&](std::int64_t row, const Columns<N>& at) {
    const Lanes<N> in = load(x.row(row), at), d = load(dy.row(row), at);
    store(dx.row(row), at, lanes<N>([&](int k) { return d.v[k] * slope_of<kKind>(in.v[k]); }));
  });
}

}  // namespace

void gelu(const Context& ctx, GeluKind kind, const ConstMatrix& x, const Matrix& y) {
  const Stream& stream = stream_of(ctx);
  with_element(x.dtype, [&]<class T>(T*) {
    const Sweep<kWidth<T>> sweep(x.rows, x.cols, rows_aligned_for<kWidth<T>>(x, y));
    if (sweep.empty()) return;
    const auto kernel = kind == GeluKind::kExact ? gelu_kernel<GeluKind::kExact, T> : gelu_kernel<GeluKind::kTanh, T>;
    launch("gelu", stream, {sweep.num_blocks(), kSweepThreads}, kernel, sweep, rows_of<T>(x), rows_of<T>(y));
  });
}

void gelu_backward(const Context& ctx, GeluKind kind, const ConstMatrix& x, const ConstMatrix& dy, const Matrix& dx) {
  const Stream& stream = stream_of(ctx);
  with_element(x.dtype, [&]<class T>(T*) {
    const Sweep<kWidth<T>> sweep(x.rows, x.cols, rows_aligned_for<kWidth<T>>(x, dy, dx));
    if (sweep.empty()) return;
    const auto kernel =
        kind == GeluKind::kExact ? gelu_backward_kernel<GeluKind::kExact, T> : gelu_backward_kernel<GeluKind::kTanh, T>;
    launch("gelu_backward", stream, {sweep.num_blocks(), kSweepThreads}, kernel, sweep, rows_of<T>(x), rows_of<T>(dy),
           rows_of<T>(dx));
  });
}

}  // namespace zerofleet::cuda
