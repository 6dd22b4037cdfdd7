// What becomes of a device that has no memory left, or fails.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "core/buffer.h"
#include "test/cuda_emulator/emulator.h"
#include "test/devices_here.h"
#include "test/error_code.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr Device kDevice{DeviceKind::kCuda, 0};

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace

DEVICE_TEST_CASE("memory that a device does not have is out_of_memory, with what was asked for") {
  emulator::set_memory_bytes(std::size_t{1} << 20);
  const auto ask = [] { const Buffer buffer(kDevice, std::size_t{3} << 20); };
  CHECK(code_of(ask) == "out_of_memory");
  CHECK(message_of(ask).find("3145728 bytes") != std::string::npos);
  const auto small = [] { const Buffer buffer(kDevice, std::size_t{1} << 19); };
  CHECK(code_of(small) == "none");
  emulator::set_memory_bytes(std::size_t{4} << 30);
}

DEVICE_TEST_CASE("what a device reports is device_failed with its name, and is over when the device works again") {
  DeviceMachine machine(kDevice);
  for (const cudaError_t status : {cudaErrorECCUncorrectable, cudaErrorIllegalAddress, cudaErrorLaunchFailure}) {
    emulator::fail_with(status);
    const auto wait = [&] { synchronize(machine.ctx); };
    CHECK(code_of(wait) == "device_failed");
    CHECK(message_of(wait).find(cudaGetErrorName(status)) != std::string::npos);
    emulator::fail_with(cudaSuccess);
    CHECK(code_of(wait) == "none");
  }
}
