#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "core/dtype.h"
#include "kernels/common/cuda/async_copy.cuh"
#include "kernels/common/cuda/vec4.h"
#include "kernels/common/cuda/warp.cuh"

// Tensor cores as one warp uses them (PTX: mma.sync.m16n8k16 with fp32 sums, ldmatrix). Lane l has of each
// fragment what its group g = l / 4 and its index t = l % 4 within the group say. All lanes of a warp must come to each
// of these functions together. The emulated twins move the same registers between the same lanes, so that tests on the
// emulated device check every index.
namespace zerofleet::cuda {

/// 16 × 16 elements of two bytes, rows × k. In r[0] are those of row g and k 2t, 2t + 1, in r[1] those of row g + 8. In
/// r[2] and r[3] are the same rows with k + 8.
struct FragmentA {
  std::uint32_t r[4];
};
/// 16 × 8 elements, k × columns; in r[0] those of column g and k 2t, 2t + 1, in r[1] with k + 8.
struct FragmentB {
  std::uint32_t r[2];
};
/// 16 × 8 sums; v[0] and v[1] are of row g and columns 2t, 2t + 1, v[2] and v[3] of row g + 8.
struct FragmentC {
  float v[4];
};

/// Two neighbouring elements of a fragment, the first in the lower half.
template <class T>
__device__ inline std::uint32_t packed(float first, float second);

/// 2^x for x ≤ 0 to about 2 ulp; results below 2^-126 are 0.
__device__ inline float fast_exp2(float x);

template <class T>
__device__ inline void mma(FragmentC& c, const FragmentA& a, const FragmentB& b);

/// Four 8 × 8 matrices of elements of two bytes. Lane l brings the address, a multiple of 16, of row l % 8 of matrix l
/// / 8. The lane gets of matrix i the elements 2t and 2t + 1 of row g, or with kTransposed of rows 2t and 2t + 1 of
/// column g.
template <bool kTransposed>
__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row);

#if defined(__CUDACC__)

template <>
__device__ inline std::uint32_t packed<bf16>(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}
template <>
__device__ inline std::uint32_t packed<f16>(float first, float second) {
  std::uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
  return pair;
}

__device__ inline float fast_exp2(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

template <>
__device__ inline void mma<bf16>(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
      : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]), "r"(b.r[1]));
}
template <>
__device__ inline void mma<f16>(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(c.v[0]), "+f"(c.v[1]), "+f"(c.v[2]), "+f"(c.v[3])
               : "r"(a.r[0]), "r"(a.r[1]), "r"(a.r[2]), "r"(a.r[3]), "r"(b.r[0]), "r"(b.r[1]));
}

template <bool kTransposed>
__device__ inline void load_matrices(std::uint32_t (&r)[4], const void* row) {
  const unsigned address = shared_address(row);
  if constexpr (kTransposed) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  } else {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
  }
}

#else

template <class T>
inline std::uint32_t packed(float first, float second) {
  return static_cast<std::uint32_t>(rounded_to<T>(first).bits) | static_cast<std::uint32_t>(rounded_to<T>(second).bits)
                                                                     << 16;
}

inline float fast_exp2(float x) { return x < -126.0F ? 0.0F : exp2f(x); }

template <class T>
inline float element_of_pair(std::uint32_t pair, int which) {
  return to_float(T{static_cast<std::uint16_t>(pair >> (16 * which))});
}

template <class T>
void mma(FragmentC& c, const FragmentA& a, const FragmentB& b) {
  struct Both {
    FragmentA a;
    FragmentB b;
  } const mine{a, b};
  const std::byte* lanes = emulator::exchange(kWholeWarp, &mine, sizeof mine);
  const int group = lane_of_warp() / 4, in_group = lane_of_warp() % 4;
  float left[2][16], right[16][2];  // the rows group and group + 8 of A, the columns 2 · in_group and the next one of B
  for (int pair = 0; pair < 4; ++pair) {
    const Both of_a = emulator::from_lane<Both>(lanes, group * 4 + pair);
    const Both of_b[2] = {emulator::from_lane<Both>(lanes, 2 * in_group * 4 + pair),
                          emulator::from_lane<Both>(lanes, (2 * in_group + 1) * 4 + pair)};
    for (int which = 0; which < 8; ++which) {
      const int high = which / 4, half = which / 2 % 2, k = high * 8 + pair * 2 + which % 2;
      left[half][k] = element_of_pair<T>(of_a.a.r[half + high * 2], k % 2);
      right[k][half] = element_of_pair<T>(of_b[half].b.r[high], k % 2);
    }
  }
  for (int i = 0; i < 4; ++i) {
    for (int k = 0; k < 16; ++k) c.v[i] += left[i / 2][k] * right[k][i % 2];
  }
}

template <bool kTransposed>
void load_matrices(std::uint32_t (&r)[4], const void* row) {
  struct Row {
    std::uint16_t elements[8];
  } mine;
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) std::abort();
  std::memcpy(&mine, row, sizeof mine);
  const std::byte* lanes = emulator::exchange(kWholeWarp, &mine, sizeof mine);
  const int group = lane_of_warp() / 4, in_group = lane_of_warp() % 4;
  for (int i = 0; i < 4; ++i) {
    std::uint32_t pair = 0;
    for (int half = 0; half < 2; ++half) {
      const int at_row = kTransposed ? 2 * in_group + half : group, at_col = kTransposed ? group : 2 * in_group + half;
      const Row from = emulator::from_lane<Row>(lanes, 8 * i + at_row);
      pair |= static_cast<std::uint32_t>(from.elements[at_col]) << (16 * half);
    }
    r[i] = pair;
  }
}

#endif

}  // namespace zerofleet::cuda
