#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "core/device/stream.h"

namespace zerofleet {

/// Exchanges that communicators have queued on one stream, and that the device has not done yet. The device runs them in order; the
/// host queues them ahead and only watches. One thread at a time uses the object.
class QueuedExchanges {
 public:
  /// Actions of a communicator about an exchange of its own while it is queued.
  class Watch {
   public:
    virtual ~Watch() = default;  // the exchange is over
    /// Called once, when all that is before the exchange in the stream is done.
    virtual void begin() = 0;
    /// Called again and again while no exchange is before this one. Throws the Error with which it failed.
    virtual void check() = 0;
    /// Makes the exchange end on the device, with undefined results.
    virtual void abort() noexcept = 0;
  };

  /// An exchange that is being queued: the stream gets it between construction and add().
  struct Exchange {
    Exchange(const Stream& stream, std::unique_ptr<Watch> watch_of_it);
    void begin();

    std::unique_ptr<Watch> watch;
    Event begun, done;
    bool has_begun = false;
  };

  /// Maximum of exchanges in the stream; when one is done there is always another for the device.
  static constexpr std::size_t kMost = 4;

  explicit QueuedExchanges(Stream& stream) : stream_(stream) {}

  Stream& stream() { return stream_; }
  bool is_empty() const { return queue_.empty(); }

  /// While `body` runs, communicators may leave their exchanges in the queue. Otherwise they wait for each.
  template <class Body>
  void run_ahead(Body&& body) {
    const Ahead ahead(runs_ahead_);
    body();
  }
  bool runs_ahead() const { return runs_ahead_; }

  /// Waits until there is room for another exchange. Throws as look() does.
  void wait_for_room();
  void add(Exchange exchange);
  /// Forgets the exchanges that are done. Throws the Error with which one failed, after abandon().
  void look();
  /// Waits until all are done. Throws as look() does.
  void wait();
  /// Ends all exchanges on the device and forgets them.
  void abandon() noexcept;

 private:
  struct Ahead {
    explicit Ahead(bool& is_ahead) : flag(is_ahead) { flag = true; }
    ~Ahead() { flag = false; }
    Ahead(const Ahead&) = delete;
    Ahead& operator=(const Ahead&) = delete;
    bool& flag;
  };

  void forget_done();

  Stream& stream_;
  std::deque<Exchange> queue_;
  bool runs_ahead_ = false;
};

}  // namespace zerofleet
