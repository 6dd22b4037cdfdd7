#pragma once

#include "kernels/common/backend.h"

// The tables of backend_of(), one per kind of device.
namespace zerofleet {

const Backend& cpu_backend();
/// Null in a build without CUDA.
const Backend* cuda_backend();

}  // namespace zerofleet
