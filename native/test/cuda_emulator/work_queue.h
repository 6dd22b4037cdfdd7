#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

namespace zerofleet::emulator {

/// A position in a queue: reached when all before it is done.
class Mark {
 public:
  using Time = std::chrono::steady_clock::time_point;

  void reach();
  void wait();
  /// Nullopt: not reached yet.
  std::optional<Time> reached_at();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<Time> reached_at_;
};

/// Work that a separate thread does in order. The destructor finishes the queued work.
class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void post(std::function<void()> work);
  std::shared_ptr<Mark> mark();
  static void wait(const std::shared_ptr<Mark>& mark) { mark->wait(); }
  bool is_empty();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool busy_ = false, ends_ = false;
  std::thread thread_;
};

}  // namespace zerofleet::emulator
