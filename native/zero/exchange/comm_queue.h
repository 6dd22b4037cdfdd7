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

/// The communication thread of one rank. Everything that this rank exchanges goes through it in the order of posting,
/// which is the same on every rank, so that exchanges meet. The first exception ends it: later tasks are called to
/// release their resources, and post() and drain() throw that exception.
///
/// Where all communicators queue their exchanges on the device (see Communicator::queue_on), a task does, too: the stream of
/// context() waits for the rank's work on the device, tasks only queue, and the thread watches over some tasks at once. On the host
/// each task is done before the next begins.
class CommQueue {
 public:
  /// Called with `failed` = false to do the work, with true to release resources after a failure or at the end.
  using Task = std::function<void(bool failed)>;

  /// `rank` is the context of the thread that posts; `communicators` are those of the posted tasks, and outlive the object.
  explicit CommQueue(const Context& rank, std::vector<Communicator*> communicators = {});
  ~CommQueue();
  CommQueue(const CommQueue&) = delete;
  CommQueue& operator=(const CommQueue&) = delete;

  /// The task's work on the device begins after all that the rank has queued there so far; what it does on the host must call
  /// wait_for_exchanges() before. All its work is done before the task counts as done.
  void post(Task task);
  /// In a task: waits until its exchanges so far are done.
  void wait_for_exchanges() { exchanges_.wait(); }
  /// In a task: an exchange that follows sends what the task has queued on the device so far.
  void finish_for_exchange();
  /// Posts an exchange of the rank itself, over any communicator, and waits until it is done; it does not count as work of the
  /// thread. Throws exceptions of the exchange, or of an earlier task.
  void run(const std::function<void()>& exchange);
  /// For the kernels of tasks: a pool and a stream beside those of the rank, which are busy with backward meanwhile.
  const Context& context() const { return context_; }

  /// Waits until all posted tasks are done.
  void drain();
  /// Returns the seconds that tasks posted since the last call have taken, on the device where they were queued there. Only after
  /// drain().
  double take_busy_seconds();
  /// Waits for the tasks that run, drops the others and ends the thread. Can be called again.
  void close();

 private:
  struct Posted {
    Task task;
    Event ready;  // marks the rank's work before it
    bool is_own = false;  // of the rank itself
  };
  /// A task on the device.
  struct Queued {
    Event begun, done;
  };

  void put(Task task, bool is_own);
  void loop();
  std::optional<Posted> next();
  /// Runs the task, if there is one, or releases its resources, and watches over those on the device. Returns the seconds of the tasks
  /// that are done.
  double work(std::optional<Posted> posted, bool drop);
  double run_on_host(const Posted& posted);
  void queue(const Posted& posted);

  Stream* rank_stream_;
  std::vector<Communicator*> communicators_;
  ThreadPool pool_{1};
  Stream stream_;
  Context context_;
  QueuedExchanges exchanges_{stream_};  // of the thread
  bool is_queueing_ = false;            // tasks are queued on the device
  std::deque<Queued> queued_;           // of the thread
  std::mutex mutex_;
  std::condition_variable posted_;
  std::condition_variable idle_;
  std::deque<Posted> tasks_;
  bool running_ = false;  // a task is, or some are on the device
  bool stopping_ = false;
  std::exception_ptr failure_;
  double busy_seconds_ = 0;
  std::thread thread_;  // last: it uses the members above
};

}  // namespace zerofleet
