#pragma once

#include <string>

#include "core/device.h"
#include "core/system/cpu_isa.h"

namespace zerofleet {

/// The scope of bit-exactness of a rank: on a CPU that of numerics_fingerprint(isa); on a GPU its kind, number of
/// multiprocessors, CUDA's runtime, the library that multiplies matrices, that of attention if there is one, the
/// environment's variables that change what libraries compute, and the version of our kernels, as
/// "cuda-nvidia-h200-sm_90x132-cudart13.0-cublaslt13.1.0-cudnn9.24.0/6". The heuristic by which a library chooses an
/// algorithm may look at all of these. Throws Error{"device_unavailable"} for a device that is not there.
std::string numerics_fingerprint(const Device& device, CpuIsa isa);

}  // namespace zerofleet
