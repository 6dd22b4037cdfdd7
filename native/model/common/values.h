#pragma once

#include <cstddef>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"

namespace zerofleet {

/// An array of T in the memory of a device, zeros at first.
template <class T>
class Values {
 public:
  Values() = default;
  Values(const Context& ctx, std::int64_t count) : buffer_(ctx.device, static_cast<std::size_t>(count) * sizeof(T)) {}

  std::span<T> span() { return buffer_.as<T>(); }
  std::span<const T> span() const { return buffer_.as<T>(); }
  std::span<T> first(std::int64_t count) { return span().first(static_cast<std::size_t>(count)); }
  std::span<const T> first(std::int64_t count) const { return span().first(static_cast<std::size_t>(count)); }
  std::span<std::byte> bytes() { return {buffer_.data(), buffer_.num_bytes()}; }
  std::size_t num_bytes() const { return buffer_.num_bytes(); }

 private:
  Buffer buffer_;
};

}  // namespace zerofleet
