#include "zero/offload/host_placement.h"

#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet {
namespace {

Context on_host(const Context& context) { return {Device{}, context.pool, context.cpu_isa}; }

}  // namespace

HostPlacement::HostPlacement(const Context& rank, const Context& comm_thread)
    : device_(rank),
      device_comm_(comm_thread),
      host_(on_host(rank)),
      host_comm_(on_host(comm_thread)),
      copies_(rank.device),
      params_free_(rank.device),
      windows_{Window(rank.device), Window(rank.device)} {}

HostPlacement::~HostPlacement() {
  try {
    copies_.synchronize();  // a copy may still read a window
  } catch (const Error&) {
    // The device has failed: nothing runs on it any more.
  }
}

Buffer HostPlacement::allocate(std::size_t num_bytes, int skew) const {
  return Buffer::on_host_for(device_.device, num_bytes, skew);
}

Buffer& HostPlacement::grown(Buffer& buffer, std::size_t num_bytes) const {
  if (buffer.num_bytes() < num_bytes) buffer = allocate(num_bytes, 0);
  return buffer;
}

std::span<const std::byte> HostPlacement::bring_pieces(std::span<const std::byte> pieces) {
  const std::span<std::byte> target(grown(pieces_, pieces.size()).data(), pieces.size());
  copy_bytes(device_comm_, target, Device{}, pieces, device_.device);
  return target;
}

std::span<std::byte> HostPlacement::open_window(std::span<std::byte> params) {
  open_ = 1 - open_;
  windows_[open_].arrived.synchronize();
  window_params_ = params;
  return {grown(windows_[open_].buffer, params.size()).data(), params.size()};
}

void HostPlacement::close_window() {
  if (device_.stream != nullptr) params_free_.record(*device_.stream);
  copies_.wait(params_free_);
  queue_copy(copies_, window_params_, {windows_[open_].buffer.data(), window_params_.size()});
  windows_[open_].arrived.record(copies_);
}

void HostPlacement::wait_for_windows() { copies_.synchronize(); }

std::size_t HostPlacement::staging_bytes() const {
  return pieces_.num_bytes() + windows_[0].buffer.num_bytes() + windows_[1].buffer.num_bytes();
}

}  // namespace zerofleet
