#pragma once

#include <cstdint>

// A warp of 32 threads that works on one block of an array.
namespace zerofleet::cuda {

/// Returns the value; what is computed from it stays where it is computed, also if it is the same in all rounds of a
/// loop.
__device__ inline int not_hoisted(int value) {
#if defined(__CUDACC__)
  asm volatile("" : "+r"(value));
#endif
  return value;
}

inline constexpr int kWarpThreads = 256;  // threads of a thread block of such kernels: eight warps
inline constexpr unsigned kWholeWarp = 0xffffffffU;

__device__ inline int lane_of_warp() { return static_cast<int>(threadIdx.x % 32); }

__device__ inline std::int64_t warp_of_grid() {
  return static_cast<std::int64_t>(blockIdx.x) * (kWarpThreads / 32) + threadIdx.x / 32;
}

/// Lane l plus lane l + 16, then l + 8, l + 4, l + 2, l + 1: on lane 0 the sum in the order of
/// kernels/flat/block_stats.h.
__device__ inline double folded_by_halves(double value) {
  for (int half = 16; half >= 1; half /= 2) value = value + __shfl_down_sync(kWholeWarp, value, half);
  return value;
}

__device__ inline std::uint64_t shuffled_xor(std::uint64_t value, int distance) {
  return __shfl_xor_sync(kWholeWarp, static_cast<unsigned long long>(value), distance);
}

__device__ inline std::uint64_t shuffled(std::uint64_t value, int lane) {
  return __shfl_sync(kWholeWarp, static_cast<unsigned long long>(value), lane);
}

}  // namespace zerofleet::cuda
