#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace zerofleet {

/// Decides how long a rank waits in an exchange, from what it has heard of its peers.
///
/// The rank waits as long as a live peer has not come to the exchange, because that peer still computes, evaluates or
/// saves. It gives up in two cases:
///
/// - Nothing was heard of a peer for `timeout`. A peer that announced its departure is excepted; its closed connections
///   show what follows.
/// - All ranks have come to the exchange, but nothing moved for `timeout`, or for the longer time granted to it.
///
/// Every rank counts its exchanges, whose order is the same on all ranks. The caller passes the time. Not thread-safe.
class ExchangeWatch {
 public:
  using Time = std::chrono::steady_clock::time_point;

  ExchangeWatch(int rank, int world_size, std::chrono::milliseconds timeout, Time now);

  /// A departing rank sends this in place of its number of exchanges: it is late for none.
  static constexpr std::uint64_t kHasLeft = std::numeric_limits<std::uint64_t>::max();

  /// Records that a peer is alive and has begun `num_begun` exchanges.
  void heard(int peer, std::uint64_t num_begun, Time now);
  bool has_heard_all() const;
  /// Restarts the measurement of silence, after this process itself was stopped and may have lost messages of peers.
  void start_anew(Time now);

  /// Begins an exchange with all other ranks. It may stand still for `timeout` plus `more`.
  void begin(Time now, std::chrono::milliseconds more = {});
  /// Records that a message from or to a peer is complete.
  void moved(Time now) { moved_at_ = now; }
  void end() { in_exchange_ = false; }

  std::uint64_t num_begun() const { return num_begun_; }
  /// Returns the reason to give up the exchange in progress; nullopt if it continues, or if there is none.
  std::optional<std::string> reason_to_give_up(Time now);

 private:
  struct Peer {
    Time heard_at;
    std::uint64_t num_begun = 0;
    bool was_heard = false;
  };

  int rank_;
  std::chrono::milliseconds timeout_, more_{};  // more_: of the exchange in progress
  std::vector<Peer> peers_;                     // by rank; this rank's own entry is unused
  std::uint64_t num_begun_ = 0;
  bool in_exchange_ = false;
  Time moved_at_;
};

}  // namespace zerofleet
