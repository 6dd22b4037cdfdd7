#include "test/cuda_emulator/work_queue.h"

#include <utility>

namespace zerofleet::emulator {

void Mark::reach() {
  const std::lock_guard lock(mutex_);
  reached_at_ = std::chrono::steady_clock::now();
  changed_.notify_all();
}

void Mark::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return reached_at_.has_value(); });
}

std::optional<Mark::Time> Mark::reached_at() {
  const std::lock_guard lock(mutex_);
  return reached_at_;
}

WorkQueue::WorkQueue() : thread_([this] { run(); }) {}

WorkQueue::~WorkQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void WorkQueue::post(std::function<void()> work) {
  {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
  }
  changed_.notify_all();
}

std::shared_ptr<Mark> WorkQueue::mark() {
  auto mark = std::make_shared<Mark>();
  post([this, mark] {
    {
      const std::lock_guard lock(mutex_);
      busy_ = false;  // a mark is no work: who has waited for the last one finds the queue empty
    }
    mark->reach();
  });
  return mark;
}

bool WorkQueue::is_empty() {
  const std::lock_guard lock(mutex_);
  return work_.empty() && !busy_;
}

void WorkQueue::run() {
  for (;;) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      busy_ = false;
      changed_.wait(lock, [this] { return !work_.empty() || ends_; });
      if (work_.empty()) return;
      work = std::move(work_.front());
      work_.pop_front();
      busy_ = true;
    }
    work();
  }
}

}  // namespace zerofleet::emulator
