#include "zero/offload/staging_pool.h"

#include <utility>

namespace zerofleet {

Buffer StagingPool::take() {
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
  Buffer buffer = std::move(free_.back());
  free_.pop_back();
  return buffer;
}

void StagingPool::announce_sending() {
  const std::lock_guard lock(mutex_);
  ++num_sending_;
}

void StagingPool::give_back(Buffer buffer) {
  {
    const std::lock_guard lock(mutex_);
    --num_sending_;
    free_.push_back(std::move(buffer));
  }
  returned_.notify_all();
}

std::size_t StagingPool::allocated_bytes() const {
  const std::lock_guard lock(mutex_);
  return num_allocated_ * buffer_bytes_;
}

}  // namespace zerofleet
