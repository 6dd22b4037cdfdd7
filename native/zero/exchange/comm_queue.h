#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "core/device/context.h"
#include "core/device/stream.h"

namespace zerofleet {

/// The communication thread of one rank. Everything that this rank exchanges goes through it in the order of posting,
/// which is the same on every rank, so that exchanges meet. The first exception ends it: later tasks are called to
/// release their resources, and post() and drain() throw that exception.
class CommQueue {
 public:
  /// Called with `failed` = false to do the work, with true to release resources after a failure or at the end.
  using Task = std::function<void(bool failed)>;

  /// `rank` is the context of the thread that posts.
  explicit CommQueue(const Context& rank);
  ~CommQueue();
  CommQueue(const CommQueue&) = delete;
  CommQueue& operator=(const CommQueue&) = delete;

  /// The task begins after all work that the rank has queued on its device so far, and the work that it queues itself
  /// is done before the task counts as done.
  void post(Task task);
  /// Posts an exchange of the rank itself and waits until it is done; it does not count as work of the thread. Throws
  /// exceptions of the exchange, or of an earlier task.
  void run(const std::function<void()>& exchange);
  /// For the kernels of tasks: a pool and a stream beside those of the rank, which are busy with backward meanwhile.
  const Context& context() const { return context_; }

  /// Waits until all posted tasks are done.
  void drain();
  /// Returns the seconds that the thread has worked on tasks posted since the last call. Only after drain().
  double take_busy_seconds();
  /// Waits for the task that runs, drops the others and ends the thread. Can be called again.
  void close();

 private:
  struct Posted {
    Task task;
    Event ready;  // marks the rank's work before it
    bool counts = true;
  };

  void put(Task task, bool counts);
  void loop();

  Stream* rank_stream_;
  ThreadPool pool_{1};
  Stream stream_;
  Context context_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable idle_;
  std::deque<Posted> tasks_;
  bool running_ = false;
  bool stopping_ = false;
  std::exception_ptr failure_;
  double busy_seconds_ = 0;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace zerofleet
