#include "zero/offload/staging_pool.h"

#include <utility>

#include "core/error.h"

namespace zerofleet {
namespace {

/// Marks nothing if the device has failed: nothing runs on it any more.
Event mark_after(const Context& user) {
  try {
    Event done(user.device);
    if (user.stream != nullptr) done.record(*user.stream);
    return done;
  } catch (const Error&) {
    return Event(Device{});
  }
}

}  // namespace

Buffer StagingPool::take(const Context& user) {
  std::unique_lock lock(mutex_);
  if (free_.empty() && num_allocated_ >= 2) {
    // If nothing is being sent, all buffers are half full and wait for gradients: waiting for them would never end.
    returned_.wait(lock, [&] { return !free_.empty() || num_sending_ == 0; });
  }
  if (free_.empty()) {
    ++num_allocated_;
    lock.unlock();
    return Buffer(device_, buffer_bytes_);
  }
  Free free = std::move(free_.back());
  free_.pop_back();
  if (user.stream != nullptr) user.stream->wait(free.done);
  return std::move(free.buffer);
}

void StagingPool::announce_sending() {
  const std::lock_guard lock(mutex_);
  ++num_sending_;
}

void StagingPool::give_back(Buffer buffer, const Context& user) {
  Event done = mark_after(user);
  {
    const std::lock_guard lock(mutex_);
    --num_sending_;
    free_.push_back({std::move(buffer), std::move(done)});
  }
  returned_.notify_all();
}

std::size_t StagingPool::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_allocated_ * buffer_bytes_;
}

}  // namespace zerofleet
