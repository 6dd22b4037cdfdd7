#include "kernels/backends/numerics.h"

#include "kernels/common/backend.h"

namespace zerofleet {

std::string numerics_fingerprint(const Device& device, CpuIsa isa) { return backend_of(device).numerics(device, isa); }

}  // namespace zerofleet
