#include "core/cuda/traits.h"

#include "core/cuda/check.h"

namespace zerofleet::cuda {
namespace {

/// Groups of 4, 2, 2, 2 and 6 bytes, in hexadecimal digits.
std::string uuid_text(const char* bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
    if (i == 3 || i == 5 || i == 7 || i == 9) text += '-';
  }
  return text;
}

}  // namespace

Traits traits(const Device& device) {
  require(device.kind == DeviceKind::kCuda, "invalid_argument", to_string(device) + " is no CUDA device");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device.index), ("properties of " + to_string(device)).c_str());
  return {uuid_text(properties.uuid.bytes), properties.name, properties.major, properties.minor,
          properties.multiProcessorCount};
}

}  // namespace zerofleet::cuda
