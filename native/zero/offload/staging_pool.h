#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/context.h"
#include "core/device/stream.h"

namespace zerofleet {

/// Reusable buffers for buckets that are filled or sent. Usually there are two: one is filled while the other is sent.
/// More are allocated only if gradients arrive out of order, so that several buckets are half full at once. One thread
/// takes buffers and announces sends; any thread returns buffers.
class StagingPool {
 public:
  StagingPool(Device device, std::size_t buffer_bytes) : device_(device), buffer_bytes_(buffer_bytes) {}

  /// Returns a buffer with undefined contents, for work that `user` queues later. Waits for a buffer in transit rather
  /// than allocate a third one. The device waits for earlier uses of the buffer.
  Buffer take(const Context& user);
  /// Announces that a taken buffer is in transit. It returns through give_back() without action of the taking thread.
  void announce_sending();
  /// Returns a buffer that was sent by work that `user` has queued.
  void give_back(Buffer buffer, const Context& user);

  std::size_t allocated_bytes() const;

 private:
  struct Free {
    Buffer buffer;
    Event done;  // earlier uses are done
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
