#pragma once

namespace zerofleet {

/// How often a thread looks before it goes to sleep: some tens of microseconds. The sections of a training step follow one
/// another closely, and waking a sleeping thread takes about as long as a small section runs.
#if defined(__SANITIZE_THREAD__)
inline constexpr int kSpins = 20;  // each look is a call into the sanitizer
#else
inline constexpr int kSpins = 4000;
#endif

inline void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// True as soon as `ready()` is, false after kSpins looks.
template <class Ready>
bool spin_until(Ready&& ready) {
  for (int spin = 0; spin < kSpins; ++spin) {
    if (ready()) return true;
    pause_cpu();
  }
  return false;
}

}  // namespace zerofleet
