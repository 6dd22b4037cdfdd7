#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace zerofleet {

/// Log of a rank that connects to the others: a line every ten seconds, and one at the end if there were others. The
/// caller passes the time. Not thread-safe.
class ConnectProgress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Log = std::function<void(const std::string&)>;

  ConnectProgress(int rank, int world_size, Time now, Log log);

  /// Writes a line if the last one is old enough.
  void tick(Time now);
  /// Records that the rank has connected to `num_peers` more peers.
  void connected(int num_peers, Time now);

 private:
  void report(Time now);

  int rank_, num_peers_, num_connected_ = 0;
  Time begun_, reported_;
  Log log_;
};

}  // namespace zerofleet
