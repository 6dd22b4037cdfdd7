#pragma once

#include <chrono>
#include <thread>

namespace zerofleet {

/// Between two looks at something that the host waits for. Most exchanges are over soon, so the first looks follow one
/// another closely.
class Pause {
 public:
  void operator()() {
    if (++num_looks_ < 200) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  int num_looks_ = 0;
};

}  // namespace zerofleet
