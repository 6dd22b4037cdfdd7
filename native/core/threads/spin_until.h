#pragma once

#include <chrono>

namespace zerofleet {

/// Time that a thread spins before it sleeps. The sections of a training step follow one another within microseconds,
/// and a sleeping thread takes about as long to wake as a small section runs. A time, not a number of spins: a pause
/// takes 10 to 140 cycles, depending on the processor.
inline constexpr std::chrono::microseconds kSpinTime{50};

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns true as soon as `ready()` is true, false after kSpinTime.
template <class Ready>
bool spin_until(Ready&& ready) {
  constexpr int kLooksPerClockRead = 16;
  std::chrono::steady_clock::time_point end{};
  for (;;) {
    for (int look = 0; look < kLooksPerClockRead; ++look) {
      if (ready()) return true;
      pause_cpu();
    }
    const auto now = std::chrono::steady_clock::now();
    if (end == std::chrono::steady_clock::time_point{}) end = now + kSpinTime;
    if (now >= end) return false;
  }
}

}  // namespace zerofleet
