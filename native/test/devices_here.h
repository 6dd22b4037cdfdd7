#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "bench/device_machine.h"
#include "core/cuda/cuda_runtime.h"
#include "core/device/buffer.h"
#include "core/device/transfer.h"

namespace zerofleet::test {

/// A case that runs on devices. `-ts=devices` picks them, and with ZF_TEST_DEVICES=cuda they leave the CPU out: that is
/// how the same cases run on a second backend.
#define DEVICE_TEST_CASE(name) TEST_CASE(name* doctest::test_suite("devices"))

inline bool cpu_is_tested() {
  const char* only = std::getenv("ZF_TEST_DEVICES");
  return only == nullptr || std::string_view(only) != "cuda";
}

/// Every CUDA device of this machine. Prints a line once if there is none, so that a run on the CPU alone is recognised
/// as such.
inline std::vector<Device> cuda_devices_here() {
  std::vector<Device> devices;
  for (int index = 0; index < cuda::num_devices(); ++index) devices.push_back({DeviceKind::kCuda, index});
  static const bool said = [&] {
    if (!devices.empty()) return true;
    const std::string where = cuda::built_in() ? "on this machine" : "in this build", problem = cuda::driver_problem();
    MESSAGE("no CUDA device " << where << (problem.empty() ? "" : " (" + problem + ")")
                              << ": cases for every device run on the CPU only");
    return true;
  }();
  (void)said;
  return devices;
}

/// The CPU and every CUDA device of this machine.
inline std::vector<Device> devices_here() {
  std::vector<Device> devices = cuda_devices_here();
  if (cpu_is_tested()) devices.insert(devices.begin(), Device{});
  return devices;
}

inline constexpr Device kFirstGpu{DeviceKind::kCuda, 0};

/// A CUDA device that this machine does not have.
inline Device absent_device() { return {DeviceKind::kCuda, cuda::num_devices()}; }

using bench::DeviceMachine;

/// Returns the contents of a device's span when all work of the context is done.
inline std::vector<float> fetched(const Context& context, std::span<const float> values) {
  std::vector<float> host(values.size());
  copy_bytes(context, std::as_writable_bytes(std::span(host)), Device{}, std::as_bytes(values), context.device);
  return host;
}

/// An array of a test in the memory of a device.
template <class T>
class DeviceArray {
 public:
  DeviceArray(const Context& context, std::span<const T> values)
      : context_(context), buffer_(context.device, values.size_bytes()) {
    copy_bytes(context_, {buffer_.data(), buffer_.num_bytes()}, context_.device, std::as_bytes(values), Device{});
  }
  DeviceArray(const Context& context, const std::vector<T>& values) : DeviceArray(context, std::span(values)) {}

  std::span<T> span() { return buffer_.template as<T>(); }
  std::span<std::byte> bytes() { return {buffer_.data(), buffer_.num_bytes()}; }
  /// Returns the array's contents when all work of the context is done.
  std::vector<T> values() const {
    std::vector<T> host(buffer_.num_bytes() / sizeof(T));
    copy_bytes(context_, std::as_writable_bytes(std::span(host)), Device{}, {buffer_.data(), buffer_.num_bytes()},
               context_.device);
    return host;
  }

 private:
  Context context_;
  Buffer buffer_;
};

}  // namespace zerofleet::test
