#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"

namespace zerofleet {

/// Buffers for buckets that are being filled or sent, reused from bucket to bucket. Usually there are two: one fills
/// while the other is sent. More are allocated only where gradients arrive out of order, so that more than one bucket
/// is half full at once. One thread takes buffers and announces that they are sent; any thread returns them.
class StagingPool {
 public:
  StagingPool(Device device, std::size_t buffer_bytes) : device_(device), buffer_bytes_(buffer_bytes) {}

  /// A buffer with undefined contents for work that `user` queues from now on. Waits for one that is being sent rather than
  /// allocating a third; the device waits for those who used it before.
  Buffer take(const Context& user);
  /// Announces that a taken buffer is being sent: it will come back through give_back() without action of the thread
  /// that takes.
  void announce_sending();
  /// Takes back a buffer that was being sent, by work that `user` has queued.
  void give_back(Buffer buffer, const Context& user);

  std::size_t allocated_bytes() const;

 private:
  struct Free {
    Buffer buffer;
    Event done;  // with it
  };

  Device device_;
  std::size_t buffer_bytes_;
  mutable std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<Free> free_;
  std::size_t num_allocated_ = 0;
  std::size_t num_sending_ = 0;
};

}  // namespace zerofleet
