#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

namespace zerofleet::emulator {

/// A place in a queue: reached when all before it is done.
class Mark {
 public:
  void reach();
  void wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reached_ = false;
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
