#pragma once

// Built-in declarations of a CUDA compiler: the language of kernels, and their launches. The emulated build includes it
// before every .cu file.
#include <cuda_runtime_api.h>
#include <math.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
// A thread of the host runs all threads of a block, and one block at a time.
#define __shared__ static thread_local

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}  // NOLINT: as CUDA's
};

struct cudaLaunchConfig_t {
  dim3 gridDim;
  dim3 blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  void* attrs = nullptr;
  unsigned numAttrs = 0;
};

// Indices of the kernel's thread that is running now.
extern constinit thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace zerofleet::emulator {

constexpr std::size_t kLaneBytes = 64;
/// All lanes of `mask` must come here together; each leaves `num_bytes` and gets what all left, kLaneBytes apart by
/// lane. It is good until the second exchange after this one.
const std::byte* exchange(unsigned mask, const void* value, std::size_t num_bytes);
void wait_for_block();
std::byte* dynamic_shared_memory();
cudaError_t set_max_dynamic_shared(const void* kernel, int num_bytes);
/// Reports on standard error, if ZF_EMULATED_ARGUMENTS is set, the words of an argument that look like addresses of
/// host memory that is not pinned, which a GPU could not read. Padding between the members of a struct may look so too.
void look_for_host_pointers(const void* kernel, int argument, const void* value, std::size_t num_bytes);
cudaError_t launch(const cudaLaunchConfig_t& config, const void* kernel, std::size_t argument_bytes,
                   std::function<void()> thread);

template <class T>
T from_lane(const std::byte* lanes, int lane) {
  T value;
  std::memcpy(&value, lanes + static_cast<std::size_t>(lane) * kLaneBytes, sizeof value);
  return value;
}
int lane_id();

}  // namespace zerofleet::emulator

inline void __syncthreads() { zerofleet::emulator::wait_for_block(); }
inline void __syncwarp(unsigned mask = 0xffffffffU) { zerofleet::emulator::exchange(mask, nullptr, 0); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
  return zerofleet::emulator::from_lane<T>(zerofleet::emulator::exchange(mask, &value, sizeof value), lane & 31);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  return __shfl_sync(mask, value, zerofleet::emulator::lane_id() ^ distance);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, int distance) {
  const int lane = zerofleet::emulator::lane_id() + distance;
  return __shfl_sync(mask, value, lane < 32 ? lane : zerofleet::emulator::lane_id());
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, int distance) {
  const int lane = zerofleet::emulator::lane_id() - distance;
  return __shfl_sync(mask, value, lane >= 0 ? lane : zerofleet::emulator::lane_id());
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const std::byte* lanes = zerofleet::emulator::exchange(mask, &predicate, sizeof predicate);
  unsigned bits = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1U) != 0 && zerofleet::emulator::from_lane<int>(lanes, lane) != 0) bits |= 1U << lane;
  }
  return bits;
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
  const std::byte* lanes = zerofleet::emulator::exchange(mask, &value, sizeof value);
  unsigned largest = 0;
  for (int lane = 0; lane < 32; ++lane) {
    if ((mask >> lane & 1U) == 0) continue;
    const auto other = zerofleet::emulator::from_lane<unsigned>(lanes, lane);
    largest = other > largest ? other : largest;
  }
  return largest;
}
inline int __popc(unsigned bits) { return std::popcount(bits); }

template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  std::tuple<std::decay_t<Parameters>...> values(std::forward<Arguments>(arguments)...);
  std::apply(
      [kernel](const auto&... value) {
        int index = 0;
        (zerofleet::emulator::look_for_host_pointers(reinterpret_cast<const void*>(kernel), index++, &value,
                                                     sizeof value),
         ...);
      },
      values);
  return zerofleet::emulator::launch(*config, reinterpret_cast<const void*>(kernel),
                                     (sizeof(std::decay_t<Parameters>) + ... + 0),
                                     [kernel, values] { std::apply(kernel, values); });
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute, int num_bytes) {
  return zerofleet::emulator::set_max_dynamic_shared(reinterpret_cast<const void*>(kernel), num_bytes);
}
