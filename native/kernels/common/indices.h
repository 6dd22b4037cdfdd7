#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/device/context.h"
#include "core/error.h"

namespace zerofleet {

/// Whole numbers that the host knows and kernels read: tokens, targets, positions. Checks use the host's copy; kernels
/// of a CUDA device read the copy on the device.
class Indices {
 public:
  Indices() = default;
  /// For a CPU, where both are one. (NOLINT: as spans are made of vectors.)
  Indices(std::span<const std::int32_t> host) : host_(host) {}     // NOLINT
  Indices(const std::vector<std::int32_t>& host) : host_(host) {}  // NOLINT
  /// `device`: the same numbers in memory that the context's device reads.
  Indices(std::span<const std::int32_t> host, const std::int32_t* device) : host_(host), device_(device) {}

  bool empty() const { return host_.empty(); }
  std::size_t size() const { return host_.size(); }
  std::int32_t operator[](std::size_t i) const { return host_[i]; }
  auto begin() const { return host_.begin(); }
  auto end() const { return host_.end(); }
  const std::int32_t* data() const { return host_.data(); }
  std::span<const std::int32_t> host() const { return host_; }

  /// Throws Error{"invalid_argument"} where there are numbers, and none on a device.
  const std::int32_t* on_device() const {
    require(device_ != nullptr || host_.empty(), "invalid_argument",
            "a kernel on a CUDA device needs its indices there");
    return device_;
  }

  Indices subspan(std::size_t first, std::size_t count) const {
    return {host_.subspan(first, count), device_ == nullptr ? nullptr : device_ + first};
  }
  Indices first(std::size_t count) const { return subspan(0, count); }

 private:
  std::span<const std::int32_t> host_;
  const std::int32_t* device_ = nullptr;
};

}  // namespace zerofleet
