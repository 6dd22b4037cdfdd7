// The emulated device itself: threads of a block that wait for each other, and lanes of a warp that exchange.
#include <doctest/doctest.h>

#include <numeric>
#include <vector>

#include "core/device/stream.h"
#include "core/device/transfer.h"
#include "kernels/common/cuda/launch_grid.cuh"
#include "test/devices_here.h"
#include "test/shared_bytes.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr int kThreads = 96;

/// Each block turns its part round, through shared memory.
__global__ void reverse_kernel(int* values) {
  __shared__ int part[kThreads];
  int* mine = values + blockIdx.x * kThreads;
  part[threadIdx.x] = mine[threadIdx.x];
  __syncthreads();
  mine[threadIdx.x] = part[kThreads - 1 - threadIdx.x];
}

/// Sums of all lanes, of the upper half by itself, and a lane's neighbour.
__global__ void exchange_kernel(int* sums, int* upper, int* neighbours) {
  const auto lane = static_cast<int>(threadIdx.x);
  int sum = lane;
  for (int half = 16; half >= 1; half /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, half);
  sums[lane] = sum;
  neighbours[lane] = __shfl_down_sync(0xffffffffU, lane, 1);
  if (lane < 16) return;
  int of_half = lane;
  for (int half = 8; half >= 1; half /= 2) of_half += __shfl_xor_sync(0xffff0000U, of_half, half);
  upper[lane] = of_half;
}

}  // namespace

DEVICE_TEST_CASE("emulated blocks: writes before a barrier are visible to all threads after it") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  SharedValues<int> values(3 * kThreads);
  std::iota(values.begin(), values.end(), 0);
  cuda::launch("reverse", machine.stream, {3, kThreads}, reverse_kernel, values.data());
  synchronize(machine.ctx);
  for (int i = 0; i < 3 * kThreads; ++i) {
    CHECK(values[static_cast<std::size_t>(i)] == i / kThreads * kThreads + kThreads - 1 - i % kThreads);
  }
}

DEVICE_TEST_CASE("emulated warps: lanes exchange in whole and in halves") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  SharedValues<int> sums(32), upper(32), neighbours(32);
  cuda::launch("exchange", machine.stream, {1, 32}, exchange_kernel, sums.data(), upper.data(), neighbours.data());
  synchronize(machine.ctx);
  for (int lane = 0; lane < 32; ++lane) {
    const auto at = static_cast<std::size_t>(lane);
    CHECK(sums[at] == 496);
    CHECK(neighbours[at] == (lane == 31 ? 31 : lane + 1));
    CHECK(upper[at] == (lane < 16 ? 0 : 376));
  }
}

DEVICE_TEST_CASE("emulated launches: launches that a device cannot run are refused") {
  DeviceMachine machine({DeviceKind::kCuda, 0});
  SharedValues<int> values(32);
  const auto code = [&](const cuda::Spread& spread) {
    try {
      cuda::launch("reverse", machine.stream, spread, reverse_kernel, values.data());
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  CHECK(code({1, 2048}).find("cudaErrorInvalidConfiguration") != std::string::npos);
  CHECK(code({0, 32}).find("cudaErrorInvalidConfiguration") != std::string::npos);
  CHECK(code({dim3(1, 70000), 32}).find("cudaErrorInvalidConfiguration") != std::string::npos);
  CHECK(code({1, 32, 60 << 10}).find("cudaErrorInvalidConfiguration") != std::string::npos);
}
