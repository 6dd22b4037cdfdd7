#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/device/stream.h"
#include "core/threads/thread_pool.h"
#include "zero/offload/offload.h"

namespace zerofleet {

/// States in (pinned) host memory, updated by the CPU. Parameters go to the device, and pieces of gradients come from it, through two
/// windows in turn each, on streams of their own: while one travels, the CPU writes the next, or folds the one before.
class HostPlacement final : public StatePlacement {
 public:
  HostPlacement(const Context& rank, const Context& comm_thread);
  ~HostPlacement() override;

  const Context& context() const override { return host_; }
  Buffer allocate(std::size_t num_bytes, int skew) const override;
  void fold(const Fold& fold) override;
  bool in_place() const override { return false; }
  std::span<std::byte> open_window(std::span<std::byte> params) override;
  void close_window() override;
  void wait_for_windows() override;
  std::size_t staging_bytes() const override;

 private:
  struct Window {
    explicit Window(Device device) : arrived(device) {}
    Buffer buffer;
    Event arrived;  // the transfer from the buffer or to it
  };

  Buffer& grown(Buffer& buffer, std::size_t num_bytes) const;
  void fold_on_device(const Fold& fold);
  void fold_on_host(const Fold& fold);

  Context device_, device_comm_;
  ThreadPool fold_pool_;  // while the rank's thread computes backward
  Context host_, host_comm_;
  Buffer sums_;  // on the device
  Stream copies_;
  Event params_free_;  // the device's pending work on the parameters when a window was closed
  std::array<Window, 2> windows_;
  std::size_t open_ = 0;                // the window that is open, or was last
  std::span<std::byte> window_params_;  // that the open window is for
  Stream piece_copies_;
  Event pieces_there_;  // the device's pending work on the pieces when they are to be folded
  std::array<Window, 2> piece_windows_;
};

}  // namespace zerofleet
