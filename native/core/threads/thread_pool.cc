#include "core/threads/thread_pool.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.h"
#include "core/threads/start_thread.h"
#include "core/threads/wait_for.h"

namespace zerofleet {

struct ThreadPool::State {
  /// A thread beside the caller, on cache lines of its own: the others do not see that it is called.
  struct alignas(128) Helper {
    std::atomic<std::uint64_t> num_calls{0};
    WaitFor wait;
    std::thread thread;
  };

  const int num_helpers;
  std::unique_ptr<Helper[]> helpers;
  std::atomic<bool> stopping{false};

  // Written while no helper works, read by those that are called.
  Call call = nullptr;
  void* body = nullptr;
  std::int64_t num_tasks = 0;
  std::atomic<std::int64_t> next_task{0};
  std::atomic<int> num_working{0};  // helpers still inside the current call
  WaitFor wait_for_end;
  std::mutex failure_mutex;
  std::exception_ptr failure;

  explicit State(int helpers_wanted)
      : num_helpers(helpers_wanted), helpers(std::make_unique<Helper[]>(static_cast<std::size_t>(helpers_wanted))) {}

  Helper& helper(int index) { return helpers[static_cast<std::size_t>(index)]; }

  /// Ends the threads that were started, also if the system refused further ones.
  ~State() {
    stopping = true;
    for (int i = 0; i < num_helpers; ++i) {
      if (!helper(i).thread.joinable()) continue;
      helper(i).wait.changed();
      helper(i).thread.join();
    }
  }

  void work(int worker) {
    for (;;) {
      const std::int64_t task = next_task.fetch_add(1, std::memory_order_relaxed);
      if (task >= num_tasks) return;
      try {
        call(body, task, worker);
      } catch (...) {
        const std::lock_guard lock(failure_mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  }

  void helper_loop(int index) {
    Helper& self = helper(index);
    for (std::uint64_t seen = 0;; ++seen) {
      self.wait([&] { return self.num_calls != seen || stopping; });
      if (stopping) return;
      work(index + 1);
      if (--num_working == 0) wait_for_end.changed();
    }
  }
};

ThreadPool::ThreadPool(int num_threads) {
  require(num_threads >= 1, "invalid_argument", "a thread pool needs at least one thread");
  state_ = std::make_unique<State>(num_threads - 1);
  for (int index = 0; index < num_threads - 1; ++index) {
    state_->helper(index).thread = start_thread([state = state_.get(), index] { state->helper_loop(index); });
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::num_threads() const { return state_->num_helpers + 1; }

void ThreadPool::run(std::int64_t num_tasks, Call call, void* body) {
  State& s = *state_;
  if (num_tasks <= 0) return;
  if (s.num_helpers == 0 || num_tasks == 1) {
    for (std::int64_t task = 0; task < num_tasks; ++task) call(body, task, 0);
    return;
  }
  const int num_called = static_cast<int>(std::min<std::int64_t>(s.num_helpers, num_tasks - 1));
  s.call = call;
  s.body = body;
  s.num_tasks = num_tasks;
  s.next_task.store(0, std::memory_order_relaxed);
  s.num_working = num_called;
  for (int index = 0; index < num_called; ++index) {
    ++s.helper(index).num_calls;
    s.helper(index).wait.changed();
  }
  s.work(0);
  s.wait_for_end([&] { return s.num_working == 0; });
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

}  // namespace zerofleet
