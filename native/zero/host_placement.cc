#include "zero/host_placement.h"

#include "core/error.h"
#include "core/transfer.h"

namespace zerofleet {
namespace {

Context on_host(const Context& context) { return {Device{}, context.pool, context.cpu_isa}; }

}  // namespace

HostPlacement::HostPlacement(const Context& rank, const Context& comm_thread)
    : device_(rank), device_comm_(comm_thread), host_(on_host(rank)), host_comm_(on_host(comm_thread)) {}

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
  window_params_ = params;
  return {grown(window_, params.size()).data(), params.size()};
}

void HostPlacement::close_window() {
  copy_bytes(device_, window_params_, device_.device, {window_.data(), window_params_.size()}, Device{});
}

void HostPlacement::wait_for_windows() {}

std::size_t HostPlacement::staging_bytes() const { return pieces_.num_bytes() + window_.num_bytes(); }

}  // namespace zerofleet
