#include "zero/offload/host_placement.h"

#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet {
HostPlacement::HostPlacement(const Context& rank, const Context& comm_thread)
    : device_(rank),
      device_comm_(comm_thread),
      fold_pool_(rank.pool->num_threads()),
      host_{Device{}, rank.pool, rank.cpu_isa},
      host_comm_{Device{}, &fold_pool_, comm_thread.cpu_isa},
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

void HostPlacement::fold(const Fold& fold) {
  // The link between device and host is the bottleneck: sums there and back, or the pieces of all senders.
  const std::size_t sum_bytes = fold.restart ? fold.sum.size() : 2 * fold.sum.size();
  sum_bytes < fold.pieces.size() ? fold_on_device(fold) : fold_on_host(fold);
}

void HostPlacement::fold_on_device(const Fold& fold) {
  if (sums_.num_bytes() < fold.sum.size()) sums_ = Buffer(device_.device, fold.sum.size());
  Fold there = fold;
  there.sum = {sums_.data(), fold.sum.size()};
  if (!fold.restart) copy_bytes(device_comm_, there.sum, device_.device, fold.sum, Device{});
  fold_pieces(device_comm_, there);
  copy_bytes(device_comm_, fold.sum, Device{}, there.sum, device_.device);
}

void HostPlacement::fold_on_host(const Fold& fold) {
  const std::span<std::byte> pieces(grown(pieces_, fold.pieces.size()).data(), fold.pieces.size());
  copy_bytes(device_comm_, pieces, Device{}, fold.pieces, device_.device);
  Fold here = fold;
  here.pieces = pieces;
  fold_pieces(host_comm_, here);
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
  return pieces_.num_bytes() + sums_.num_bytes() + windows_[0].buffer.num_bytes() + windows_[1].buffer.num_bytes();
}

}  // namespace zerofleet
