#include "zero/exchange/comm_queue.h"

#include <utility>

#include "core/device/transfer.h"
#include "core/error.h"
#include "core/threads/start_thread.h"
#include "zero/exchange/stopwatch.h"

namespace zerofleet {

CommQueue::CommQueue(const Context& rank)
    : rank_stream_(rank.stream),
      stream_(rank.device, Stream::Priority::kUrgent),
      context_{rank.device, &pool_, rank.cpu_isa, &stream_},
      thread_(start_thread([this] { loop(); })) {}

CommQueue::~CommQueue() { close(); }

void CommQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void CommQueue::post(Task task) { put(std::move(task), true); }

void CommQueue::run(const std::function<void()>& exchange) {
  bool done = false;  // read when the queue is drained
  put([&](bool failed) {
    if (!failed) exchange();
    done = !failed;
  }, false);
  drain();
  require(done, "comm_failed", "ranks ended before an exchange of rows");
}

void CommQueue::put(Task task, bool counts) {
  Event ready(context_.device);
  if (rank_stream_ != nullptr) ready.record(*rank_stream_);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) {
      task(true);
      std::rethrow_exception(failure_);
    }
    tasks_.push_back({std::move(task), std::move(ready), counts});
  }
  posted_.notify_all();
}

void CommQueue::drain() {
  std::unique_lock lock(mutex_);
  idle_.wait(lock, [&] { return tasks_.empty() && !running_; });
  if (failure_) std::rethrow_exception(failure_);
}

double CommQueue::take_busy_seconds() {
  const std::lock_guard lock(mutex_);
  return std::exchange(busy_seconds_, 0.0);
}

void CommQueue::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    posted_.wait(lock, [&] { return stopping_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Posted posted = std::move(tasks_.front());
    tasks_.pop_front();
    running_ = true;
    const bool drop = stopping_ || failure_ != nullptr;
    lock.unlock();
    const Stopwatch watch;
    std::exception_ptr failure;
    try {
      if (!drop) posted.ready.synchronize();
      posted.task(drop);
      if (!drop) synchronize(context_);
    } catch (...) {
      failure = std::current_exception();
    }
    posted.task = nullptr;  // releases its captures before waiters see that it is done
    lock.lock();
    if (posted.counts) busy_seconds_ += watch.seconds();
    if (failure && !failure_) failure_ = failure;
    running_ = false;
    if (tasks_.empty()) idle_.notify_all();
  }
}

}  // namespace zerofleet
