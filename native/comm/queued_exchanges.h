#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <utility>

#include "core/device/stream.h"

namespace zerofleet {

/// Exchanges that communicators have queued on one stream and that the device has not finished. The device runs them in
/// order; the host only watches. One thread at a time uses the object.
class QueuedExchanges {
 public:
  /// A communicator's handling of one of its queued exchanges. Destroyed when the exchange has ended.
  class Watch {
   public:
    virtual ~Watch() = default;
    /// Called once, when the stream has finished all work before the exchange.
    virtual void begin() = 0;
    /// Called repeatedly while the exchange is the first in the queue. Throws the Error with which it failed.
    virtual void check() = 0;
    /// Ends the exchange on the device, with undefined results.
    virtual void abort() noexcept = 0;
  };

  /// An exchange to queue. Its work enters the stream between construction and add().
  struct Exchange {
    Exchange(const Stream& stream, std::unique_ptr<Watch> exchange_watch);
    void begin();

    std::unique_ptr<Watch> watch;
    Event begun, done;
    bool has_begun = false;
  };

  /// Largest number of exchanges in the stream, so that the device always has another one when one ends.
  static constexpr std::size_t kMost = 4;

  explicit QueuedExchanges(Stream& stream) : stream_(stream) {}

  Stream& stream() { return stream_; }
  bool is_empty() const { return queue_.empty(); }

  /// Lets communicators leave exchanges in the queue while `body` runs. Otherwise they wait for each exchange.
  template <class Body>
  void run_ahead(Body&& body) {
    const Ahead ahead(runs_ahead_);
    body();
  }
  bool runs_ahead() const { return runs_ahead_; }

  /// Waits until the queue has room for an exchange. Throws as look() does.
  void wait_for_room();
  void add(Exchange exchange);
  /// Removes finished exchanges. If one failed, calls abandon() and throws its Error.
  void look();
  /// Waits until all exchanges have finished. Throws as look() does.
  void wait();
  /// Ends all exchanges on the device, and removes them.
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
