#pragma once

#include <string>

#include "core/device.h"
#include "core/system/cpu_isa.h"

namespace zerofleet {

/// The scope of bit-exactness of a rank. On a CPU it is that of numerics_fingerprint(isa). On a GPU it has the
/// following parts, as in "cuda-nvidia-h200-sm_90x132-cudart13.0-cublaslt13.1.0-cudnn9.24.0/6":
/// - the GPU's kind, its number of multiprocessors, and CUDA's runtime
/// - the library that multiplies matrices, and that of attention if there is one
/// - the environment's variables that change what libraries compute
/// - the version of our kernels
///
/// The heuristic by which a library chooses an algorithm may look at all of these. Throws Error{"device_unavailable"}
/// for a device that is not there.
std::string numerics_fingerprint(const Device& device, CpuIsa isa);

}  // namespace zerofleet
