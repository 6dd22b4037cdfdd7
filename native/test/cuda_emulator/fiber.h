#pragma once

#include <cstddef>
#include <functional>

namespace zerofleet::emulator {

/// Threads of a kernel, all on one thread of the host: each has a stack and runs until it waits. Not thread-safe.
class Fiber {
 public:
  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Sets the body that resume() enters next. The last body must have ended, or is abandoned: nothing of its stack is
  /// destroyed.
  void start(const std::function<void()>& body);
  /// Runs it until it calls pause() or ends. True when it has ended.
  bool resume();
  /// Prefetches the stack that resume() begins with.
  void prefetch() const { __builtin_prefetch(stack_pointer_); }
  /// In a running fiber: back to whom resumed it.
  static void pause();

 private:
  struct Switch;
  [[noreturn]] static void enter();

  std::byte* stack_ = nullptr;
  void* stack_pointer_ = nullptr;   // of this fiber while it waits
  void* caller_pointer_ = nullptr;  // of whom resumed it while it runs
  const void* caller_stack_ = nullptr;
  std::size_t caller_stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  // of AddressSanitizer
  void* caller_fake_stack_ = nullptr;
  const std::function<void()>* body_ = nullptr;
  bool ended_ = true;
};

}  // namespace zerofleet::emulator
