#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "comm/communicator.h"
#include "comm/queued_exchanges.h"
#include "core/device/context.h"
#include "core/device/stream.h"

namespace zerofleet {

/// The communication thread of a rank. All exchanges of the rank run on it in the order of posting, which is the same
/// on every rank. The first exception ends the thread: later tasks are called only to release their resources, and
/// post() and drain() throw the exception.
///
/// If all communicators queue their exchanges on the device (see Communicator::queue_on), tasks only queue work. The
/// stream of context() then waits for the rank's work on the device, and the thread watches several tasks at once. On
/// the host each task is complete before the next one starts.
class CommQueue {
 public:
  /// Called with `failed` = false to do its work, or with true to release its resources after a failure or at the end.
  using Task = std::function<void(bool failed)>;

  /// `rank`: context of the posting thread. `communicators`: those of the posted tasks; they must outlive the object.
  explicit CommQueue(const Context& rank, std::vector<Communicator*> communicators = {});
  ~CommQueue();
  CommQueue(const CommQueue&) = delete;
  CommQueue& operator=(const CommQueue&) = delete;

  /// Posts a task. Its work on the device starts after everything that the rank has queued there so far. Work on the
  /// host must call wait_for_exchanges() first. The task is done when all its work is done.
  void post(Task task);
  /// Within a task: waits until its exchanges so far are done.
  void wait_for_exchanges() { exchanges_.wait(); }
  /// Within a task: makes the next exchange wait for the work that the task has queued on the device.
  void finish_for_exchange();
  /// Posts an exchange of the rank itself over any communicator, and waits until it is done. Its time is not part of
  /// take_busy_seconds(). Throws exceptions of this exchange or of an earlier task.
  void run(const std::function<void()>& exchange);
  /// Context for kernels of tasks. Its pool and stream are separate from the rank's, which are busy with backward.
  const Context& context() const { return context_; }

  /// Waits until all posted tasks are done.
  void drain();
  /// Returns the seconds that tasks since the last call have taken, on the device if they were queued there. Requires
  /// drain().
  double take_busy_seconds();
  /// Waits for running tasks, drops all others, and ends the thread. Idempotent.
  void close();

 private:
  struct Posted {
    Task task;
    Event ready;          // marks the rank's earlier work
    bool is_own = false;  // posted by run()
  };
  /// A task that was queued on the device.
  struct Queued {
    Event begun, done;
  };

  void put(Task task, bool is_own);
  void loop();
  std::optional<Posted> next();
  /// Runs `posted`, or releases its resources, and watches the tasks on the device. Returns the seconds of tasks that
  /// have finished.
  double work(std::optional<Posted> posted, bool drop);
  double run_on_host(const Posted& posted);
  void queue(const Posted& posted);

  Stream* rank_stream_;
  std::vector<Communicator*> communicators_;
  ThreadPool pool_{1};
  Stream stream_;
  Context context_;
  QueuedExchanges exchanges_{stream_};  // used by the thread only
  bool is_queueing_ = false;            // tasks queue their work on the device
  std::deque<Queued> queued_;           // used by the thread only
  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable idle_;
  std::deque<Posted> tasks_;
  bool running_ = false;  // a task runs, or the device has unfinished tasks
  bool stopping_ = false;
  std::exception_ptr failure_;
  double busy_seconds_ = 0;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace zerofleet
