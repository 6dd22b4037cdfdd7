#pragma once

#include <cstddef>

#include "kernels/common/cuda/launch_grid.cuh"

namespace zerofleet::cuda {

/// The dynamic shared memory of the launch; aligned to 16 bytes.
template <class T>
__device__ T* dynamic_shared() {
#if defined(__CUDACC__)
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
#else
  return reinterpret_cast<T*>(emulator::dynamic_shared_memory());
#endif
}

/// Before a launch with more of it than kernels get unasked: 48 KiB with the arrays that a kernel declares, for which
/// 16 are left here. At most 163 KiB on an A100, 227 KiB on an H100. Cheap enough for each launch.
template <class Kernel>
void allow_dynamic_shared(Kernel* kernel, std::size_t num_bytes, const char* name) {
  if (num_bytes <= std::size_t{32} << 10) return;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(num_bytes)), name);
}

}  // namespace zerofleet::cuda
