#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "core/threads/spin_until.h"

namespace zerofleet {

/// Waits for atomic values that change far more often than a thread waits for them. A change makes a system call only
/// if a thread sleeps; std::atomic::notify_all() of libstdc++ 12 makes one each time.
class WaitFor {
 public:
  /// Returns once `ready()` holds, which reads atomic values with sequential consistency.
  template <class Ready>
  void operator()(const Ready& ready) {
    if (spin_until(ready)) return;
    std::unique_lock lock(mutex_);
    ++num_sleeping_;
    changed_.wait(lock, ready);
    --num_sleeping_;
  }

  /// To be called after such a value was changed, with sequential consistency too.
  void changed() {
    if (num_sleeping_ == 0) return;
    {
      const std::lock_guard lock(mutex_);
    }  // a waiter that has checked the value, but does not sleep yet, holds it
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<int> num_sleeping_{0};
};

}  // namespace zerofleet
