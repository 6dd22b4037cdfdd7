#pragma once

#include <cstdint>

#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/common/cuda/row_vector.cuh"

// Code shared by the row norms: the incoming residual stream, and its outgoing gradient.
namespace zerofleet::cuda {

/// Arguments of a forward: it norms s = x + delta, which goes to `sum`, or without delta x.
template <class T>
struct NormForward {
  Rows<const T> x, delta;
  Rows<T> sum, y;
  const T* weight;
  float* rstd;
  std::int64_t rows, cols;
  float eps;
  bool aligned;

  /// Calls body(s) for this thread's part of a row of s, rounded to T, and stores that.
  template <class Team, class Body>
  __device__ void sweep_sums(std::int64_t row, const Body& body) const {
    constexpr int N = kWidth<T>;
    Team::template sweep<N>(cols, aligned, [&](const Columns<N>& at) {
      Lanes<N> s = load(x.row(row), at);
      if (delta.data != nullptr) {
        const Lanes<N> added = load(delta.row(row), at);
        s = lanes<N>([&](int k) { return widened(narrowed<T>(s.v[k] + added.v[k])); });
        store(sum.row(row), at, s);
      }
      body(s);
    });
  }
  /// A row of s after that: each thread reads what it has written itself.
  __device__ const T* sums(std::int64_t row) const { return delta.data != nullptr ? sum.row(row) : x.row(row); }

  /// Combines each thread's part of the sum of squares.
  template <class Team>
  __device__ float rstd_of(float squares) const {
    return 1.0F / sqrtf(Team::sum(squares) / static_cast<float>(cols) + eps);
  }
};

/// Arguments of a backward: dx = residual + the gradient through the norm.
template <class T>
struct NormBackward {
  Rows<const T> dy, x, residual;
  Rows<T> dx;
  const T* weight;
  const float* rstd;
  std::int64_t rows, cols;
  bool aligned;

  template <int N>
  __device__ void store_gradient(std::int64_t row, const Columns<N>& at, Lanes<N> grad) const {
    if (residual.data != nullptr) {
      const Lanes<N> before = load(residual.row(row), at);
      grad = lanes<N>([&](int k) { return before.v[k] + grad.v[k]; });
    }
    store(dx.row(row), at, grad);
  }
};

/// vectors_aligned: whether vectors that only some norms have are.
template <class T, class Args>
NormForward<T> norm_forward_of(const Args& args, bool vectors_aligned = true) {
  constexpr int N = kWidth<T>;
  const bool aligned = vectors_aligned && rows_aligned_for<N>(args.x, args.delta, args.sum, args.y) &&
                       aligned_for<N>(args.weight, args.x.dtype);
  return {rows_of<T>(args.x),
          rows_of<T>(args.delta),
          rows_of<T>(args.sum),
          rows_of<T>(args.y),
          static_cast<const T*>(args.weight),
          args.rstd.data(),
          args.x.rows,
          args.x.cols,
          static_cast<float>(args.eps),
          aligned};
}

template <class T, class Args>
NormBackward<T> norm_backward_of(const Args& args) {
  constexpr int N = kWidth<T>;
  const bool aligned =
      rows_aligned_for<N>(args.dy, args.x, args.residual, args.dx) && aligned_for<N>(args.weight, args.x.dtype);
  return {rows_of<T>(args.dy),
          rows_of<T>(args.x),
          rows_of<T>(args.residual),
          rows_of<T>(args.dx),
          static_cast<const T*>(args.weight),
          args.rstd.data(),
          args.x.rows,
          args.x.cols,
          aligned};
}

}  // namespace zerofleet::cuda
