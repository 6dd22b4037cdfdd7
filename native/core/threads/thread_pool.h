#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace zerofleet {

/// A fixed set of threads that runs independent tasks. Which thread runs which task is left to chance, so a task must
/// be fully described by its index. Tasks write disjoint outputs, and no result may depend on the number of threads.
/// One parallel_for runs at a time; the calling thread takes part, and no more threads are woken than there are tasks
/// for. Idle threads look for work for kSpinTime and then sleep, so ranks can share cores.
class ThreadPool {
 public:
  /// `num_threads` counts the calling thread. Throws Error{"invalid_argument"} if it is below 1, and what
  /// start_thread() does.
  explicit ThreadPool(int num_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int num_threads() const;

  /// Calls body(task, worker) for task in [0, num_tasks); worker in [0, num_threads()) tells scratch memory apart.
  /// The first exception thrown by a task is rethrown here after all tasks have ended.
  template <class Body>
  void parallel_for(std::int64_t num_tasks, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        num_tasks, [](void* self, std::int64_t task, int worker) { (*static_cast<Plain*>(self))(task, worker); },
        const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  using Call = void (*)(void* body, std::int64_t task, int worker);
  void run(std::int64_t num_tasks, Call call, void* body);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace zerofleet
