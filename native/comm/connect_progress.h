#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace zerofleet {

/// Reports of a rank that connects to the others, for its log: one every ten seconds, and one at the end if there was one before.
/// Time is passed in. Not thread-safe.
class ConnectProgress {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Log = std::function<void(const std::string&)>;

  ConnectProgress(int rank, int world_size, Time now, Log log);

  /// Reports if the last report was long enough ago.
  void tick(Time now);
  /// Records further peers to which the rank is connected.
  void connected(int num_peers, Time now);

 private:
  void report(Time now);

  int rank_, num_peers_, num_connected_ = 0;
  Time begun_, reported_;
  Log log_;
};

}  // namespace zerofleet
