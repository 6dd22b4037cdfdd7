#include "core/cuda/cuda_runtime.h"
#include "core/error.h"
#include "kernels/backends/tables.h"

namespace zerofleet {

const Backend& backend_of(const Device& device) {
  if (device.kind == DeviceKind::kCpu) return cpu_backend();
  if (const Backend* backend = cuda_backend()) return *backend;
  cuda::use(device);  // throws, with the reason
  throw Error("device_unavailable", "no kernels for the device " + to_string(device));
}

}  // namespace zerofleet
