#include "zero/offload/host_placement.h"

#include <algorithm>

#include "core/device/transfer.h"
#include "core/error.h"

namespace zerofleet {
namespace {

/// Bytes of pieces that travel while those before them are folded: enough for the bandwidth of the link.
constexpr std::size_t kPartBytes = std::size_t{8} << 20;

}  // namespace

HostPlacement::HostPlacement(const Context& rank, const Context& comm_thread)
    : device_(rank),
      device_comm_(comm_thread),
      fold_pool_(rank.pool->num_threads()),
      host_{Device{}, rank.pool, rank.cpu_isa},
      host_comm_{Device{}, &fold_pool_, comm_thread.cpu_isa},
      copies_(rank.device),
      params_free_(rank.device),
      windows_{Window(rank.device), Window(rank.device)},
      piece_copies_(rank.device),
      pieces_there_(rank.device),
      piece_windows_{Window(rank.device), Window(rank.device)} {}

HostPlacement::~HostPlacement() {
  try {
    copies_.synchronize();  // a copy may still use a window
    piece_copies_.synchronize();
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
  const std::size_t width = size_of(fold.piece_dtype), sum_width = size_of(fold.sum_dtype),
                    numel = fold.sum.size() / sum_width;
  const auto num_pieces = static_cast<std::size_t>(fold.num_pieces);
  const std::size_t part = std::max(kPartBytes / (num_pieces * width), std::size_t{1});
  const auto part_from = [&](std::size_t first) { return std::min(part, numel - first); };
  const auto window_of = [&](std::size_t first) -> Window& { return piece_windows_[first / part % 2]; };
  const auto contents = [&](std::size_t first) {
    const std::size_t num_bytes = num_pieces * part_from(first) * width;
    return std::span(grown(window_of(first).buffer, num_bytes).data(), num_bytes);
  };
  const auto send = [&](std::size_t first) {
    const std::size_t piece_bytes = part_from(first) * width;
    for (std::size_t piece = 0; piece < num_pieces; ++piece) {
      queue_copy(piece_copies_, contents(first).subspan(piece * piece_bytes, piece_bytes),
                 fold.pieces.subspan((piece * numel + first) * width, piece_bytes));
    }
    window_of(first).arrived.record(piece_copies_);
  };
  if (device_comm_.stream != nullptr) pieces_there_.record(*device_comm_.stream);
  piece_copies_.wait(pieces_there_);
  send(0);
  for (std::size_t first = 0; first < numel; first += part) {
    if (first + part < numel) send(first + part);
    window_of(first).arrived.synchronize();
    Fold here = fold;
    here.pieces = contents(first);
    here.sum = fold.sum.subspan(first * sum_width, part_from(first) * sum_width);
    fold_pieces(host_comm_, here);
  }
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
  std::size_t num_bytes = sums_.num_bytes();
  for (const auto* windows : {&windows_, &piece_windows_}) {
    for (const Window& window : *windows) num_bytes += window.buffer.num_bytes();
  }
  return num_bytes;
}

}  // namespace zerofleet
