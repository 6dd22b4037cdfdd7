#pragma once

#include <string>

#include "comm/nccl_library.h"
#include "core/device.h"

namespace zerofleet {

/// A rank's claim that all ranks of its NCCL world in this process use its device. The claim ends with the object.
///
/// Ranks that are threads of one process read each other's memory by its address. Memory of a CUDA pool, which all of
/// ours is, is not mapped on other devices.
class OneDeviceHere {
 public:
  /// Throws Error{"invalid_argument"} if the process has a rank of the world on another device.
  OneDeviceHere(const nccl::UniqueId& world, Device device);
  ~OneDeviceHere();
  OneDeviceHere(const OneDeviceHere&) = delete;
  OneDeviceHere& operator=(const OneDeviceHere&) = delete;

 private:
  std::string world_;
};

}  // namespace zerofleet
