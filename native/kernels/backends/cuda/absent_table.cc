// A build without CUDA has no table of CUDA kernels.
#include "kernels/backends/tables.h"

namespace zerofleet {

const Backend* cuda_backend() { return nullptr; }

}  // namespace zerofleet
