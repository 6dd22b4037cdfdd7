#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/device.h"

namespace zerofleet {

/// Deleter: gives memory back to whom it came from.
struct ReleaseBytes {
  enum class Source : std::uint8_t { kMapped, kPinned, kCuda };

  std::size_t mapped_bytes = 0;
  std::size_t lead_bytes = 0;  // of the mapping, before the data
  Source source = Source::kMapped;
  void operator()(std::byte* data) const noexcept;
};

/// Owning, zero-initialised memory on one device. Host memory is aligned to 64 bytes, CUDA memory to 256. Large host
/// memory is aligned to 2 MiB and advised for huge pages, except for what would fill little of its last one. On CPUs
/// huge pages are worth up to a factor of two for memory-bound passes. Move-only. Throws Error{"out_of_memory"} with
/// the requested size, Error{"device_unavailable"} for a device that is not there or not built in. CUDA memory must not
/// be given back while queued work uses it.
class Buffer {
 public:
  Buffer() = default;
  /// Arrays that one pass walks side by side should be given different `skew` (0 to 28). Each unit of `skew` counts for
  /// 17 pages between the start of the huge pages and the data. With equal skews, arrays of one size lie in the same
  /// cache sets and memory banks one by one. This halves the speed of such a pass (measured for AdamW's four
  /// arrays).
  Buffer(Device device, std::size_t num_bytes, int skew = 0);

  /// Host memory that `user` copies from and to: pinned where that is a CUDA device, so that copies run at full speed
  /// and beside kernels.
  static Buffer on_host_for(Device user, std::size_t num_bytes, int skew = 0);

  /// Takes over pages of host memory that were mapped, of which the data are the first.
  static Buffer of_pages(std::byte* pages, std::size_t num_bytes, std::size_t mapped_bytes);

  Device device() const { return device_; }
  std::size_t num_bytes() const { return num_bytes_; }
  bool empty() const { return num_bytes_ == 0; }
  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }

  /// The buffer as elements of T; trailing bytes that do not fill a T are left out. Those of another device than the
  /// CPU are an address only.
  template <class T>
  std::span<T> as() {
    return {reinterpret_cast<T*>(data_.get()), num_bytes_ / sizeof(T)};
  }
  template <class T>
  std::span<const T> as() const {
    return {reinterpret_cast<const T*>(data_.get()), num_bytes_ / sizeof(T)};
  }

 private:
  void map(int skew);

  Device device_;
  std::size_t num_bytes_ = 0;
  std::unique_ptr<std::byte, ReleaseBytes> data_;
};

}  // namespace zerofleet
