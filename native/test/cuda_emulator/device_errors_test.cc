// Behaviour of a device that runs out of memory or fails.
#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>

#include "core/cuda/cuda_runtime.h"
#include "core/device/buffer.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

DEVICE_TEST_CASE("memory that a device does not have is out_of_memory, with the requested size") {
  emulator::set_memory_bytes(std::size_t{1} << 20);
  const auto ask = [] { const Buffer buffer(kFirstGpu, std::size_t{3} << 20); };
  CHECK(code_of(ask) == "out_of_memory");
  CHECK(message_of(ask).find("3145728 bytes") != std::string::npos);
  const auto small = [] { const Buffer buffer(kFirstGpu, std::size_t{1} << 19); };
  CHECK(code_of(small) == "none");
  emulator::set_memory_bytes(std::size_t{4} << 30);
}

DEVICE_TEST_CASE("failures of a device have codes by cause, and end when the device works again") {
  DeviceMachine machine(kFirstGpu);
  const std::array<std::pair<cudaError_t, const char*>, 7> kinds{{{cudaErrorECCUncorrectable, "gpu_memory_fault"},
                                                                  {cudaErrorContained, "gpu_memory_fault"},
                                                                  {cudaErrorNvlinkUncorrectable, "gpu_lost"},
                                                                  {cudaErrorUnknown, "gpu_lost"},
                                                                  {cudaErrorIllegalAddress, "gpu_fault"},
                                                                  {cudaErrorLaunchFailure, "gpu_fault"},
                                                                  {cudaErrorInvalidConfiguration, "device_failed"}}};
  for (const auto& [status, code] : kinds) {
    emulator::fail_with(status);
    const auto wait = [&] { synchronize(machine.ctx); };
    CHECK(code_of(wait) == code);
    CHECK(message_of(wait).find(cudaGetErrorName(status)) != std::string::npos);
    emulator::fail_with(cudaSuccess);
    CHECK(code_of(wait) == "none");
  }
}

DEVICE_TEST_CASE("a driver that is too old for the runtime is reported with both versions") {
  CHECK(cuda::driver_problem().empty());
  emulator::set_driver_version(12020);
  const std::string reason = "the driver supports CUDA up to 12.2, and this build has the runtime of CUDA 13.0";
  CHECK(cuda::num_devices() == 0);
  CHECK(cuda::driver_problem().starts_with(reason));
  const auto use = [] { cuda::use(kFirstGpu); };
  CHECK(code_of(use) == "device_unavailable");
  CHECK(message_of(use).find(reason) != std::string::npos);

  emulator::set_driver_version(0);  // not installed
  CHECK(cuda::num_devices() == 0);
  CHECK(cuda::driver_problem().empty());
  CHECK(code_of(use) == "device_unavailable");
  emulator::set_driver_version(13000);
  CHECK(cuda::num_devices() == 1);
}

DEVICE_TEST_CASE("a device's pool keeps its memory, and reserved memory is available") {
  {
    const Buffer buffer(kFirstGpu, std::size_t{5} << 20);
  }
  const auto before = cuda::memory_of(kFirstGpu);
  CHECK(before.reserved >= std::size_t{5} << 20);
  std::int64_t growths = emulator::counts().pool_growths;
  {
    const Buffer buffer(kFirstGpu, std::size_t{5} << 20);
  }
  CHECK(emulator::counts().pool_growths == growths);

  const std::size_t more = before.reserved - before.in_use + (std::size_t{3} << 20);
  cuda::reserve(kFirstGpu, more);
  growths = emulator::counts().pool_growths;
  {
    const Buffer buffer(kFirstGpu, more);
    CHECK(cuda::memory_of(kFirstGpu).in_use == before.in_use + more);
  }
  CHECK(emulator::counts().pool_growths == growths);
  const auto after = cuda::memory_of(kFirstGpu);
  CHECK(after.in_use == before.in_use);
  CHECK(after.reserved == before.in_use + more);
  CHECK(after.peak >= before.in_use + more);

  const auto too_much = [&] { cuda::reserve(kFirstGpu, after.total + 1); };
  CHECK(code_of(too_much) == "out_of_memory");
  CHECK(message_of(too_much).find(std::to_string(after.free) + " of " + std::to_string(after.total)) !=
        std::string::npos);
}
