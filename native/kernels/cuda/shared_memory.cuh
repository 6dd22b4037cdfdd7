#pragma once

// The dynamic shared memory of a block: as many bytes as its launch asked for.
namespace zerofleet::cuda {

template <class T>
__device__ inline T* dynamic_shared() {
#if defined(__CUDACC__)
  extern __shared__ __align__(16) unsigned char dynamic_shared_bytes[];
  return reinterpret_cast<T*>(dynamic_shared_bytes);
#else
  return reinterpret_cast<T*>(emulator::dynamic_shared_memory());
#endif
}

}  // namespace zerofleet::cuda
