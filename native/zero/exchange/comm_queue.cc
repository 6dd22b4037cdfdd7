#include "zero/exchange/comm_queue.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/device/transfer.h"
#include "core/error.h"
#include "core/threads/start_thread.h"
#include "zero/exchange/stopwatch.h"

namespace zerofleet {
namespace {

/// Between two looks at what is on the device. Ranks that drain the queue wait so much longer than needed.
constexpr std::chrono::microseconds kLookInterval{50};

/// Returns true if all do; otherwise none does.
bool all_queue_on(QueuedExchanges& exchanges, const std::vector<Communicator*>& communicators) {
  const bool all = std::ranges::all_of(communicators, [&](Communicator* comm) { return comm->queue_on(&exchanges); });
  if (!all) {
    for (Communicator* comm : communicators) comm->queue_on(nullptr);
  }
  return all;
}

}  // namespace

CommQueue::CommQueue(const Context& rank, std::vector<Communicator*> communicators)
    : rank_stream_(rank.stream),
      communicators_(std::move(communicators)),
      stream_(rank.device, Stream::Priority::kUrgent),
      context_{rank.device, &pool_, rank.cpu_isa, &stream_} {
  is_queueing_ =
      rank.device.kind != DeviceKind::kCpu && !communicators_.empty() && all_queue_on(exchanges_, communicators_);
  thread_ = start_thread([this] { loop(); });
}

CommQueue::~CommQueue() { close(); }

void CommQueue::close() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  posted_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  if (!is_queueing_) return;
  for (Communicator* comm : communicators_) comm->queue_on(nullptr);
}

void CommQueue::post(Task task) { put(std::move(task), false); }

void CommQueue::run(const std::function<void()>& exchange) {
  bool done = false;  // read when the queue is drained
  put(
      [&](bool failed) {
        if (!failed) exchange();
        done = !failed;
      },
      true);
  drain();
  require(done, "comm_failed", "ranks ended before an exchange of rows");
}

void CommQueue::put(Task task, bool is_own) {
  Event ready(context_.device);
  if (rank_stream_ != nullptr) ready.record(*rank_stream_);
  {
    const std::lock_guard lock(mutex_);
    if (failure_) {
      task(true);
      std::rethrow_exception(failure_);
    }
    tasks_.push_back({std::move(task), std::move(ready), is_own});
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
    const auto has_task = [&] { return !tasks_.empty(); };
    running_ = !queued_.empty();
    if (running_) {
      posted_.wait_for(lock, kLookInterval, has_task);
    } else {
      if (!has_task()) idle_.notify_all();
      posted_.wait(lock, [&] { return stopping_ || has_task(); });
      if (!has_task()) return;
    }
    std::optional<Posted> posted = next();
    const bool drop = stopping_ || failure_ != nullptr;
    running_ = true;
    lock.unlock();
    double seconds = 0;
    std::exception_ptr failure;
    try {
      seconds = work(std::move(posted), drop);
    } catch (...) {
      failure = std::current_exception();
      exchanges_.abandon();
      queued_.clear();
    }
    lock.lock();
    busy_seconds_ += seconds;
    if (failure && !failure_) failure_ = failure;
  }
}

std::optional<CommQueue::Posted> CommQueue::next() {
  if (tasks_.empty()) return std::nullopt;
  Posted posted = std::move(tasks_.front());
  tasks_.pop_front();
  return posted;
}

double CommQueue::work(std::optional<Posted> posted, bool drop) {
  double seconds = 0;
  if (posted && drop) {
    posted->task(true);
  } else if (posted) {
    is_queueing_ && !posted->is_own ? queue(*posted) : void(seconds = run_on_host(*posted));
  }
  exchanges_.look();
  for (; !queued_.empty() && queued_.front().done.is_done(); queued_.pop_front()) {
    seconds += queued_.front().done.seconds_since(queued_.front().begun);
  }
  return seconds;
}

// Exchanges that run ahead follow in the stream; others would read too early.
void CommQueue::finish_for_exchange() {
  if (!exchanges_.runs_ahead()) synchronize(context_);
}

double CommQueue::run_on_host(const Posted& posted) {
  exchanges_.wait();  // they would wait for ever on the device if a peer is gone
  posted.ready.synchronize();
  const Stopwatch watch;
  posted.task(false);
  synchronize(context_);
  return posted.is_own ? 0 : watch.seconds();
}

void CommQueue::queue(const Posted& posted) {
  stream_.wait(posted.ready);
  Queued queued{Event(context_.device, Event::Times::kKept), Event(context_.device, Event::Times::kKept)};
  queued.begun.record(stream_);
  exchanges_.run_ahead([&] { posted.task(false); });
  queued.done.record(stream_);
  queued_.push_back(std::move(queued));
}

}  // namespace zerofleet
