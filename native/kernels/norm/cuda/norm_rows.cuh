#pragma once

#include <cstdint>

#include "kernels/common/cuda/elements.cuh"
#include "kernels/common/cuda/row_team.cuh"
#include "kernels/common/cuda/row_vector.cuh"

// Code shared by the forwards of row norms. A row of up to 8192 elements is read once and held in registers.
namespace zerofleet::cuda {

inline constexpr int kHeldElements = 32;  // of a row, by each thread

/// Room for what a thread holds of a row; something where that is nothing.
template <class T, class Row>
using Held = Lanes<kWidth<T>>[Row::kHeld > 0 ? Row::kHeld : 1];

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

  /// Calls body(s) for this thread's elements of a row of s, rounded to T. Stores them, and keeps them in `held` if Row
  /// allows.
  template <class Row, int kAccesses, class Body>
  __device__ void sweep_sums(std::int64_t row, Lanes<kWidth<T>> (&held)[kAccesses], const Body& body) const {
    constexpr int N = kWidth<T>;
    Row::sweep(cols, aligned, [&](int i, const Columns<N>& at) {
      Lanes<N> s = load(x.row(row), at);
      if (delta.data != nullptr) {
        const Lanes<N> added = load(delta.row(row), at);
        s = lanes<N>([&](int k) { return widened(narrowed<T>(s.v[k] + added.v[k])); });
        store(sum.row(row), at, s);
      }
      if constexpr (Row::kHeld > 0) held[i] = s;
      body(s);
    });
  }
  /// Then calls body(columns, s) for the same elements. Each thread rereads from memory the elements that it wrote and
  /// did not keep; past the row's end the value is `other`.
  template <class Row, int kAccesses, class Body>
  __device__ void sweep_again(std::int64_t row, const Lanes<kWidth<T>> (&held)[kAccesses], float other,
                              const Body& body) const {
    constexpr int N = kWidth<T>;
    const T* sums = delta.data != nullptr ? sum.row(row) : x.row(row);
    Row::sweep(cols, aligned, [&](int i, const Columns<N>& at) {
      if constexpr (Row::kHeld > 0) {
        body(at, held[i]);
      } else {
        body(at, load(sums, at, other));
      }
    });
  }

  /// Combines each thread's part of the sum of squares.
  template <class Team>
  __device__ float rstd_of(float squares) const {
    return 1.0F / sqrtf(Team::sum(squares) / static_cast<float>(cols) + eps);
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

}  // namespace zerofleet::cuda
