#include "core/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "core/error.h"

namespace zerofleet {

struct ThreadPool::State {
  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable done;
  std::uint64_t generation = 0;  // counts parallel_for calls
  int num_working = 0;           // helpers still inside the current call
  bool stopping = false;
  std::exception_ptr failure;

  Call call = nullptr;
  void* body = nullptr;
  std::int64_t num_tasks = 0;
  std::atomic<std::int64_t> next_task{0};

  std::vector<std::thread> helpers;

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
    std::unique_lock lock(mutex);
    for (;;) {
      wake.wait(lock, [&] { return stopping || generation != seen; });
      if (stopping) return;
      seen = generation;
      lock.unlock();
      work(worker);
      lock.lock();
      if (--num_working == 0) done.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int num_threads) : state_(std::make_unique<State>()) {
  require(num_threads >= 1, "invalid_argument", "a thread pool needs at least one thread");
  for (int worker = 1; worker < num_threads; ++worker) {
    state_->helpers.emplace_back([state = state_.get(), worker] { state->helper_loop(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  for (auto& helper : state_->helpers) helper.join();
}

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
    s.num_working = static_cast<int>(s.helpers.size());
    s.failure = nullptr;
    ++s.generation;
  }
  s.wake.notify_all();
  s.work(0);
  std::unique_lock lock(s.mutex);
  s.done.wait(lock, [&] { return s.num_working == 0; });
  if (s.failure) std::rethrow_exception(std::exchange(s.failure, nullptr));
}

}  // namespace zerofleet
