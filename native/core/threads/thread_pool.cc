#include "core/threads/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/threads/spin_until.h"
#include "core/threads/start_thread.h"

namespace zerofleet {

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  // Written under the mutex, so that a thread about to sleep cannot miss a change; read without it while spinning.
  std::atomic<std::uint64_t> generation{0};  // counts parallel_for calls
  std::atomic<int> num_working{0};           // helpers still inside the current call
  std::atomic<bool> stopping{false};
  std::exception_ptr failure;

  Call call = nullptr;
  void* body = nullptr;
  std::int64_t num_tasks = 0;
  std::atomic<std::int64_t> next_task{0};

  std::vector<std::thread> helpers;

  /// Ends the threads that there are, also where the system gave no more of them.
  ~State() {
    {
      const std::lock_guard lock(mutex);
      stopping.store(true);
    }
    wake.notify_all();
    for (std::thread& helper : helpers) helper.join();
  }

  void work(int worker) {
    for (;;) {
      const std::int64_t task = next_task.fetch_add(1, std::memory_order_relaxed);
      if (task >= num_tasks) return;
      try {
        call(body, task, worker);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }

  void helper_loop(int worker) {
    std::uint64_t seen = 0;
    const auto called = [&] { return stopping.load() || generation.load() != seen; };
    for (;;) {
      if (!spin_until(called)) {
        std::unique_lock lock(mutex);
        wake.wait(lock, called);
      }
      if (stopping.load()) return;
      seen = generation.load();
      work(worker);
      const std::lock_guard lock(mutex);
      if (--num_working == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  require(num_threads >= 1, "invalid_argument", "a thread pool needs at least one thread");
  state_->helpers.reserve(static_cast<std::size_t>(num_threads - 1));
  for (int worker = 1; worker < num_threads; ++worker) {
    state_->helpers.push_back(start_thread([state = state_.get(), worker] { state->helper_loop(worker); }));
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::num_threads() const { return static_cast<int>(state_->helpers.size()) + 1; }

void ThreadPool::run(std::int64_t num_tasks, Call call, void* body) {
  State& s = *state_;
  if (num_tasks <= 0) return;
  if (s.helpers.empty() || num_tasks == 1) {
    for (std::int64_t task = 0; task < num_tasks; ++task) call(body, task, 0);
    return;
  }
  {
    const std::lock_guard lock(s.mutex);
    s.call = call;
    s.body = body;
    s.num_tasks = num_tasks;
    s.next_task.store(0, std::memory_order_relaxed);
    s.num_working.store(static_cast<int>(s.helpers.size()));
    s.failure = nullptr;
    s.generation.fetch_add(1);
  }
  s.wake.notify_all();
  s.work(0);
  const auto finished = [&] { return s.num_working.load() == 0; };
  spin_until(finished);
  // The lock is taken in any case: the last helper may still be inside its own section.
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, finished);
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

}  // namespace zerofleet
