#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/error.h"
#include "kernels/common/cuda/elements.cuh"

// Neighbouring elements of a row, which one thread reads, computes with in fp32 and writes at once.
namespace zerofleet::cuda {

/// Elements of T in 16 bytes, the widest access of one thread.
template <class T>
inline constexpr int kWidth = 16 / static_cast<int>(sizeof(T));

/// On a device they must stay in registers: loops over them are unrolled whole, so that every index is a constant.
template <int N>
struct Lanes {
  float v[N];
};

/// In memory: one access, or several of 16 bytes.
template <class T, int N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Packed {
  static constexpr int kWords = static_cast<int>(N * sizeof(T) / 4);
  std::uint32_t word[kWords];

  __device__ T at(int k) const {
    if constexpr (sizeof(T) == 4)
      return std::bit_cast<T>(word[k]);
    else
      return std::bit_cast<T>(static_cast<std::uint16_t>(word[k / 2] >> (k % 2 * 16)));
  }
  /// Elements in order, from the first on.
  __device__ void set(int k, T value) {
    if constexpr (sizeof(T) == 4)
      word[k] = std::bit_cast<std::uint32_t>(value);
    else if (k % 2 == 0)
      word[k / 2] = std::bit_cast<std::uint16_t>(value);
    else
      word[k / 2] |= static_cast<std::uint32_t>(std::bit_cast<std::uint16_t>(value)) << 16;
  }
  /// The compiler divides such an access into its elements now and then, when there are several: glu_backward took a
  /// quarter more time (H100).
  __device__ void write(T* to) const {
#if defined(__CUDA_ARCH__)
    if constexpr (kWords % 4 == 0) {
#pragma unroll
      for (int i = 0; i < kWords; i += 4) {
        asm volatile("st.v4.b32 [%0], {%1, %2, %3, %4};" ::"l"(reinterpret_cast<std::uint32_t*>(to) + i), "r"(word[i]),
                     "r"(word[i + 1]), "r"(word[i + 2]), "r"(word[i + 3])
                     : "memory");
      }
    } else if constexpr (kWords == 2) {
      asm volatile("st.v2.b32 [%0], {%1, %2};" ::"l"(to), "r"(word[0]), "r"(word[1]) : "memory");
    } else {
      *reinterpret_cast<Packed*>(to) = *this;
    }
#else
    *reinterpret_cast<Packed*>(to) = *this;
#endif
  }
};

/// The columns of a row that one thread handles: `count` (0 to N) from `first` on; `whole`: N, and all arrays aligned.
template <int N>
struct Columns {
  std::int64_t first;
  int count;
  bool whole;
};

template <int N>
__device__ inline Columns<N> columns_from(std::int64_t first, std::int64_t cols, bool aligned) {
  const std::int64_t left = cols - first;
  const int count = left >= N ? N : left > 0 ? static_cast<int>(left) : 0;
  return {first, count, aligned && count == N};
}

/// Converts like core/dtype.h, in one instruction (a NaN stays a NaN, its payload may differ).
__device__ inline float widened(float value) { return value; }
__device__ inline float widened(bf16 value) { return to_float(value); }
__device__ inline float widened(f16 value) {
#if defined(__CUDA_ARCH__)
  float wide;
  asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(value.bits));
  return wide;
#else
  return to_float(value);
#endif
}

template <class T>
__device__ inline T narrowed(float value) {
  return value;
}
template <>
__device__ inline bf16 narrowed<bf16>(float value) {
#if defined(__CUDA_ARCH__)
  bf16 narrow;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
#else
  return to_bf16(value);
#endif
}
template <>
__device__ inline f16 narrowed<f16>(float value) {
#if defined(__CUDA_ARCH__)
  f16 narrow;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(narrow.bits) : "f"(value));
  return narrow;
#else
  return to_f16(value);
#endif
}

/// {value(0), value(1) …}
template <int N, class Value>
__device__ inline Lanes<N> lanes(const Value& value) {
  Lanes<N> x;
#pragma unroll
  for (int k = 0; k < N; ++k) x.v[k] = value(k);
  return x;
}

/// Beyond at.count it is `other`.
template <int N, class T>
__device__ inline Lanes<N> load(const T* row, const Columns<N>& at, float other = 0.0F) {
  if (at.whole) {
    const Packed<T, N> packed = *reinterpret_cast<const Packed<T, N>*>(row + at.first);
    return lanes<N>([&](int k) { return widened(packed.at(k)); });
  }
  return lanes<N>([&](int k) { return k < at.count ? widened(row[at.first + k]) : other; });
}

template <int N, class T>
__device__ inline void store(T* row, const Columns<N>& at, const Lanes<N>& x) {
  if (at.whole) {
    Packed<T, N> packed;
#pragma unroll
    for (int k = 0; k < N; ++k) packed.set(k, narrowed<T>(x.v[k]));
    packed.write(row + at.first);
  } else {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (k < at.count) row[at.first + k] = narrowed<T>(x.v[k]);
    }
  }
}

/// Returns true if a thread can access N elements at once wherever a multiple of N columns of a row begins. No data:
/// true.
template <int N>
bool aligned_for(const void* data, DType dtype, std::int64_t stride = 0) {
  const std::size_t unit = std::min<std::size_t>(16, N * size_of(dtype));
  return reinterpret_cast<std::uintptr_t>(data) % unit == 0 &&
         static_cast<std::size_t>(stride) * size_of(dtype) % unit == 0;
}
template <int N, class... Matrices>
bool rows_aligned_for(const Matrices&... matrices) {
  return (aligned_for<N>(matrices.data, matrices.dtype, matrices.stride) && ...);
}

/// Threads of a block of the kernels below.
inline constexpr int kSweepThreads = 256;

/// Spreads the elements of a matrix over the threads of a grid: N columns of a row each, row after row.
template <int N>
struct Sweep {
  std::int64_t rows, cols;
  bool aligned;
  unsigned per_row;

  Sweep(std::int64_t num_rows, std::int64_t num_cols, bool is_aligned)
      : rows(num_rows), cols(num_cols), aligned(is_aligned), per_row(static_cast<unsigned>((num_cols + N - 1) / N)) {
    require(cols <= INT32_MAX && rows * per_row <= INT32_MAX, "invalid_argument",
            "a matrix is too large for one kernel launch");
  }
  bool empty() const { return rows == 0 || cols == 0; }
  unsigned num_blocks() const { return (static_cast<unsigned>(rows) * per_row + kSweepThreads - 1) / kSweepThreads; }

  /// Calls body(row, columns) in a thread that has any.
  template <class Body>
  __device__ void of_thread(const Body& body) const {
    const unsigned index = blockIdx.x * kSweepThreads + threadIdx.x, row = index / per_row;
    if (row >= rows) return;
    body(static_cast<std::int64_t>(row),
         columns_from<N>(static_cast<std::int64_t>(index % per_row) * N, cols, aligned));
  }
};

}  // namespace zerofleet::cuda
