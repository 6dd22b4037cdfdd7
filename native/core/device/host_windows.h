#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"

namespace zerofleet {

/// Access of the host to large arrays, wherever they lie. Arrays of a CUDA device pass through two pinned windows: the
/// device copies one while the host works on the other. Memory is allocated at first use. For one stream and its
/// thread.
class HostWindows {
 public:
  static constexpr std::size_t kWindowBytes = std::size_t{16} << 20;

  /// window_bytes: the size of a piece, a multiple of the element size of all arrays.
  explicit HostWindows(std::size_t window_bytes = kWindowBytes) : window_bytes_(window_bytes) {}
  ~HostWindows();
  HostWindows(const HostWindows&) = delete;
  HostWindows& operator=(const HostWindows&) = delete;

  /// Calls consume(offset, bytes) for consecutive pieces of `source`, memory of the context's device; on a CPU for all
  /// of it at once.
  void read(const Context& context, std::span<const std::byte> source,
            const std::function<void(std::size_t, std::span<const std::byte>)>& consume);
  /// Calls produce(offset, bytes), which writes consecutive pieces of `target`. The bytes arrive in the order of the
  /// context's stream.
  void write(const Context& context, std::span<std::byte> target,
             const std::function<void(std::size_t, std::span<std::byte>)>& produce);

 private:
  struct Window {
    explicit Window(Device device, std::size_t num_bytes)
        : buffer(Buffer::on_host_for(device, num_bytes)), copied(device) {}
    Buffer buffer;
    Event copied;
  };

  /// The window for a piece, when its last copy is done.
  Window& window(Device device, std::size_t piece);

  std::size_t window_bytes_;
  std::array<std::optional<Window>, 2> windows_;
  std::size_t num_pieces_ = 0;  // in all calls: neighbours use different windows
};

}  // namespace zerofleet
