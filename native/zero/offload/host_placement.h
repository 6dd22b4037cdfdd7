#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "core/device/stream.h"
#include "core/threads/thread_pool.h"
#include "zero/offload/offload.h"

namespace zerofleet {

/// Placement of states in (pinned) host memory, updated by the CPU.
///
/// Parameters travel to the device, and pieces of gradients from it, each through two alternating windows on streams of
/// their own. While one window travels, the CPU writes the next one or folds the previous one.
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
    Event arrived;  // the transfer from or to the buffer is done
  };

  Buffer& grown(Buffer& buffer, std::size_t num_bytes) const;
  void fold_on_device(const Fold& fold);
  void fold_on_host(const Fold& fold);

  Context device_, device_comm_;
  ThreadPool fold_pool_;  // for folds during backward
  Context host_, host_comm_;
  Buffer sums_;  // on the device
  Stream copies_;
  Event params_free_;  // the device's earlier work on the parameters is done
  std::array<Window, 2> windows_;
  std::size_t open_ = 0;                // the open window, or the last one
  std::span<std::byte> window_params_;  // target of the open window
  Stream piece_copies_;
  Event pieces_there_;  // the device's earlier work on the pieces is done
  std::array<Window, 2> piece_windows_;
};

}  // namespace zerofleet
