#pragma once

#include <string>

#include "core/device.h"
#include "core/system/cpu_isa.h"

namespace zerofleet::cuda {

/// Row of the table: see numerics_fingerprint() of kernels/backends/numerics.h.
std::string numerics(const Device& device, CpuIsa isa);

}  // namespace zerofleet::cuda
