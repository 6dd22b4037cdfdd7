#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "core/device.h"
#include "core/device/buffer.h"

namespace zerofleet {

/// Memory of parameters that every rank of a communicator reads in full and writes in part. This class gives each rank
/// a copy of its own.
class ParamMemory {
 public:
  /// `communicator` must outlive the object.
  ParamMemory(Device device, Communicator& communicator) : device_(device), communicator_(communicator) {}
  virtual ~ParamMemory() = default;
  ParamMemory(const ParamMemory&) = delete;
  ParamMemory& operator=(const ParamMemory&) = delete;

  Communicator& communicator() const { return communicator_; }
  /// True if other ranks use the same copy.
  virtual bool is_shared() const { return false; }

  /// Allocates zeroed arrays. Must be called on every rank at once, with the same sizes.
  virtual std::vector<Buffer> allocate(std::span<const std::size_t> sizes) {
    std::vector<Buffer> arrays;
    for (const std::size_t num_bytes : sizes) arrays.emplace_back(device_, num_bytes);
    return arrays;
  }
  /// Must be called before the rank writes its part.
  virtual void begin_writes() {}
  /// Gathers as Communicator::all_gathers() does.
  virtual void all_gathers(std::span<const Gather> gathers) { communicator_.all_gathers(gathers); }
  /// Must be called on every rank at once after the gathers. Only then do all ranks have all parts.
  virtual void end_writes() {}

 private:
  Device device_;
  Communicator& communicator_;
};

}  // namespace zerofleet
