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

/// Before a launch with kNumBytes of it: without this a kernel gets up to 48 KiB, with the arrays that it declares. At
/// most 163 KiB on an A100, 227 KiB on an H100. Cheap enough for each launch. Not inlined, because
/// tools/gpu/kernel_resources.py reads the kernel and its bytes from the names of these functions in objects.
template <auto* kKernel, std::size_t kNumBytes>
[[gnu::noinline]] void allow_dynamic_shared(const char* name) {
  check(cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kNumBytes)), name);
}

}  // namespace zerofleet::cuda
