#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace zerofleet {

/// Decides whether a rank goes on waiting in an exchange, from what it has heard of its peers. It waits as long as a peer that
/// lives has not come to the exchange: that one still computes, evaluates or saves. It gives up
///
///   a peer of which nothing was heard for `timeout`, unless it said that it leaves: then its connections tell the rest, and
///   an exchange in which nothing moved for `timeout`, or the longer time that it was granted, although all ranks have come to it.
///
/// Every rank counts its exchanges, which are in the same order on all. Time is passed in. Not thread-safe.
class ExchangeWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  ExchangeWatch(int rank, int world_size, std::chrono::milliseconds timeout, Time now);

  /// Sent by a rank that leaves instead of the number of its exchanges: it is late for none.
  static constexpr std::uint64_t kHasLeft = std::numeric_limits<std::uint64_t>::max();

  /// Records that a peer lives and has begun `num_begun` exchanges.
  void heard(int peer, std::uint64_t num_begun, Time now);
  bool has_heard_all() const;
  /// Restarts the measurement of silence: this process itself was stopped, and messages of peers may be lost.
  void start_anew(Time now);

  /// The rank begins an exchange with all others, which may stand still for the timeout and `more`.
  void begin(Time now, std::chrono::milliseconds more = {});
  /// Records that a message from or to a peer is done.
  void moved(Time now) { moved_at_ = now; }
  void end() { in_exchange_ = false; }

  std::uint64_t num_begun() const { return num_begun_; }
  /// Returns the reason to give up the exchange in progress; nullopt if it goes on, or there is none.
  std::optional<std::string> reason_to_give_up(Time now);

 private:
  struct Peer {
    Time heard_at;
    std::uint64_t num_begun = 0;
    bool was_heard = false;
  };

  int rank_;
  std::chrono::milliseconds timeout_, more_{};  // more_: of the exchange in progress
  std::vector<Peer> peers_;  // by rank; the own entry is not used
  std::uint64_t num_begun_ = 0;
  bool in_exchange_ = false;
  Time moved_at_;
};

}  // namespace zerofleet
