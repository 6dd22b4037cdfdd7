// A build without CUDA has no device to describe.
#include "core/cuda/cuda_runtime.h"
#include "core/cuda/traits.h"

namespace zerofleet::cuda {

Traits traits(const Device& device) {
  use(device);  // throws in such a build
  return {};
}

}  // namespace zerofleet::cuda
