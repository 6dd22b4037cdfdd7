#pragma once

#include "core/host_device.h"
#include "kernels/common/cuda/warp.cuh"

namespace zerofleet::cuda {

/// Threads of a block that works on one row.
inline constexpr int kRowThreads = 256;

/// Sum over the lanes of a warp, by halves; every lane has it.
__device__ inline float warp_sum(float value) {
  for (int half = 16; half >= 1; half /= 2) value = value + __shfl_xor_sync(kWholeWarp, value, half);
  return value;
}

/// Sum over all kRowThreads threads of a block, each warp by halves and then the warps in order; every thread has it.
/// All threads must come here. `parts` is shared memory that nothing else uses, and may be used again after the next
/// barrier.
__device__ inline float block_sum(float value, float (&parts)[kRowThreads / 32]) {
  const float of_warp = warp_sum(value);
  __syncthreads();  // the last sum in `parts` has been read
  if (lane_of_warp() == 0) parts[threadIdx.x / 32] = of_warp;
  __syncthreads();
  float sum = 0;
  ZF_DEVICE_UNROLL(8)
  for (int warp = 0; warp < kRowThreads / 32; ++warp) sum = sum + parts[warp];
  return sum;
}

}  // namespace zerofleet::cuda
