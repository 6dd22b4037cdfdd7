#pragma once

#include <cstdint>
#include <string>

namespace zerofleet {

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

/// Location of a buffer or of a kernel's execution. `index` counts devices of one kind; it is 0 for the CPU.
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;

  friend bool operator==(const Device&, const Device&) = default;
};

inline std::string to_string(const Device& device) {
  return device.kind == DeviceKind::kCpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

}  // namespace zerofleet
