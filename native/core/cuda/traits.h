#pragma once

#include <string>

#include "core/device.h"

namespace zerofleet::cuda {

/// Properties of a device: those of its kind, and those that distinguish it from others.
struct Traits {
  std::string uuid;  // as NVML writes it: GPU-…
  std::string name;
  int compute_major = 0, compute_minor = 0;
  int num_multiprocessors = 0;
};

/// Makes no context on the device, so it takes none of its memory. Throws Error{"device_unavailable"}.
Traits traits(const Device& device);

}  // namespace zerofleet::cuda
