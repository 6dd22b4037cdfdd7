#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/device.h"
#include "core/device/buffer.h"

namespace zerofleet {

/// Memory of parameters that every rank of a communicator reads whole and each fills in part. This class is memory of the rank's own.
class ParamMemory {
 public:
  /// `communicator` must outlive the object.
  ParamMemory(Device device, Communicator& communicator) : device_(device), communicator_(communicator) {}
  virtual ~ParamMemory() = default;
  ParamMemory(const ParamMemory&) = delete;
  ParamMemory& operator=(const ParamMemory&) = delete;

  Communicator& communicator() const { return communicator_; }
  /// Returns true if other ranks use the same copy.
  virtual bool is_shared() const { return false; }

  /// Zeroed arrays of these sizes. On every rank at once, with the same sizes.
  virtual std::vector<Buffer> allocate(std::span<const std::size_t> sizes) {
    std::vector<Buffer> arrays;
    for (const std::size_t num_bytes : sizes) arrays.emplace_back(device_, num_bytes);
    return arrays;
  }
  /// Before the rank writes its part.
  virtual void begin_writes() {}
  /// As Communicator::all_gathers().
  virtual void all_gathers(std::span<const Gather> gathers) { communicator_.all_gathers(gathers); }
  /// After the gathers. On every rank at once; only then have all ranks all parts.
  virtual void end_writes() {}

 private:
  Device device_;
  Communicator& communicator_;
};

}  // namespace zerofleet
