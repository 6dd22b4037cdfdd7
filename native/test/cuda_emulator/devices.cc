// Visible devices of a process and their faults, set by the environment for tests of programs that do not know of the
// emulation:
// - ZF_EMULATED_GPUS: how many there are, 1 by default; a process computes on the first that it sees
// - CUDA_VISIBLE_DEVICES: as CUDA reads it, of UUIDs
// - ZF_EMULATED_COMPUTE: major of the compute capability, 8 by default
// - ZF_EMULATED_MEMORY_MIB: of each device
// - ZF_EMULATED_FAULT: "UUID status launch", that device fails so from that launch of a process on
// - ZF_EMULATED_DRIVER: newest version of CUDA that the driver supports, as 12020; 0: no driver
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "test/cuda_emulator/emulator.h"

namespace {

constexpr const char* kUuidBegin = "GPU-e3e3e3e3-0000-0000-0000-00000000000";  // and a digit

std::string variable(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : value;
}

/// Last digits of the UUIDs of the devices that this process sees.
const std::vector<int>& visible() {
  static const std::vector<int> devices = [] {
    const int count = std::stoi(variable("ZF_EMULATED_GPUS", "1"));
    std::vector<int> seen;
    if (std::getenv("CUDA_VISIBLE_DEVICES") == nullptr) {
      for (int digit = 0; digit < count; ++digit) seen.push_back(digit);
      return seen;
    }
    std::istringstream names(variable("CUDA_VISIBLE_DEVICES", ""));
    for (std::string name; std::getline(names, name, ',');) {
      const int digit = name.empty() ? -1 : name.back() - '0';
      if (digit < 0 || digit >= count || name != kUuidBegin + std::to_string(digit)) break;  // CUDA stops there, too
      seen.push_back(digit);
    }
    return seen;
  }();
  return devices;
}

std::atomic<int>& driver_version() {
  static std::atomic<int> one{std::stoi(variable("ZF_EMULATED_DRIVER", "13000"))};
  return one;
}

struct Fault {
  bool is_here = false;
  int status = 0;
  std::int64_t launch = 0;
};

Fault fault_of_environment() {
  std::istringstream words(variable("ZF_EMULATED_FAULT", ""));
  std::string uuid;
  Fault fault;
  words >> uuid >> fault.status >> fault.launch;
  fault.is_here = !words.fail() && !visible().empty() && uuid == kUuidBegin + std::to_string(visible().front());
  return fault;
}

}  // namespace

namespace zerofleet::emulator {

int num_visible_devices() {
  static const bool limited = [] {
    const std::string limit = variable("ZF_EMULATED_MEMORY_MIB", "");
    if (!limit.empty()) set_memory_bytes(std::stoull(limit) << 20);
    return !limit.empty();
  }();
  (void)limited;
  return static_cast<int>(visible().size());
}

void set_driver_version(int version) { driver_version() = version; }

cudaError_t status_of_driver() {
  // A driver supports all runtimes of its major version.
  if (driver_version() / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
  return num_visible_devices() == 0 ? cudaErrorNoDevice : cudaSuccess;
}

void fail_as_asked(std::int64_t launch) {
  static const Fault fault = fault_of_environment();
  if (fault.is_here && launch >= fault.launch) fail_with(static_cast<cudaError_t>(fault.status));
}

}  // namespace zerofleet::emulator

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (device < 0 || device >= zerofleet::emulator::num_visible_devices()) return cudaErrorInvalidDevice;
  *properties = {};
  std::snprintf(properties->name, sizeof properties->name, "Emulated device");
  std::memset(properties->uuid.bytes, 0, sizeof properties->uuid.bytes);
  std::memset(properties->uuid.bytes, 0xe3, 4);
  properties->uuid.bytes[15] = static_cast<char>(visible()[static_cast<std::size_t>(device)]);
  properties->major = std::stoi(variable("ZF_EMULATED_COMPUTE", "8"));
  properties->minor = 0;
  properties->multiProcessorCount = 2;
  return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int* version) {
  *version = driver_version();
  return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
