#include "core/device/host_windows.h"

#include <algorithm>

#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet {

HostWindows::~HostWindows() {
  try {
    for (const auto& window : windows_) {
      if (window) window->copied.synchronize();
    }
  } catch (const Error&) {
    // The device has failed: nothing runs on it any more.
  }
}

HostWindows::Window& HostWindows::window(Device device, std::size_t piece) {
  std::optional<Window>& window = windows_[piece % 2];
  if (!window) window.emplace(device, window_bytes_);
  window->copied.synchronize();
  return *window;
}

void HostWindows::read(const Context& context, std::span<const std::byte> source,
                       const std::function<void(std::size_t, std::span<const std::byte>)>& consume) {
  if (source.empty()) return;
  if (context.device.kind == DeviceKind::kCpu) return consume(0, source);
  Stream& stream = stream_of(context);
  const auto size_at = [&](std::size_t offset) { return std::min(window_bytes_, source.size() - offset); };
  const auto queue = [&](std::size_t offset) {
    Window& next = window(context.device, num_pieces_++);
    queue_copy(stream, {next.buffer.data(), size_at(offset)}, source.subspan(offset, size_at(offset)));
    next.copied.record(stream);
  };
  queue(0);
  for (std::size_t offset = 0; offset < source.size(); offset += window_bytes_) {
    const std::size_t piece = num_pieces_ - 1;
    if (offset + window_bytes_ < source.size()) queue(offset + window_bytes_);
    const Window& arrived = window(context.device, piece);
    consume(offset, {arrived.buffer.data(), size_at(offset)});
  }
}

void HostWindows::write(const Context& context, std::span<std::byte> target,
                        const std::function<void(std::size_t, std::span<std::byte>)>& produce) {
  if (target.empty()) return;
  if (context.device.kind == DeviceKind::kCpu) return produce(0, target);
  Stream& stream = stream_of(context);
  for (std::size_t offset = 0; offset < target.size(); offset += window_bytes_) {
    const std::span<std::byte> piece = target.subspan(offset, std::min(window_bytes_, target.size() - offset));
    Window& next = window(context.device, num_pieces_++);
    const std::span<std::byte> bytes(next.buffer.data(), piece.size());
    produce(offset, bytes);
    queue_copy(stream, piece, bytes);
    next.copied.record(stream);
  }
}

}  // namespace zerofleet
