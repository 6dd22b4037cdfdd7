#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/device.h"

namespace zerofleet {

/// Deleter: gives a memory mapping back to the system.
struct UnmapBytes {
  std::size_t mapped_bytes = 0;
  std::size_t lead_bytes = 0;  // of the mapping, before the data
  void operator()(std::byte* data) const noexcept;
};

/// Owning, zero-initialised memory on one device, aligned to 64 bytes (to 2 MiB and advised for huge pages when it is
/// large: on CPUs that is worth up to a factor of two for memory-bound passes). Move-only.
/// Throws Error{"out_of_memory"} with the size asked for, Error{"device_unavailable"} for a device that is not built in.
class Buffer {
 public:
  Buffer() = default;
  /// Arrays that one pass walks side by side should be given different `skew` (0 to 28): each counts for 17 pages between
  /// the start of the huge pages and the data. With equal skews, arrays of one size lie in the same cache sets and
  /// memory banks place by place, which halves the speed of such a pass (measured for AdamW's four arrays).
  Buffer(Device device, std::size_t num_bytes, int skew = 0);

  Device device() const { return device_; }
  std::size_t num_bytes() const { return num_bytes_; }
  bool empty() const { return num_bytes_ == 0; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }

  /// The buffer as elements of T; trailing bytes that do not fill a T are left out.
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_.get()), num_bytes_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.get()), num_bytes_ / sizeof(T)};
  }

 private:
  Device device_;
  std::size_t num_bytes_ = 0;
  std::unique_ptr<std::byte, UnmapBytes> data_;
};

}  // namespace zerofleet
