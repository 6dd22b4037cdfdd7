#include "comm/connect_progress.h"

namespace zerofleet {
namespace {

using namespace std::chrono_literals;

constexpr auto kInterval = 10s;

}  // namespace

ConnectProgress::ConnectProgress(int rank, int world_size, Time now, Log log)
    : rank_(rank), num_peers_(world_size - 1), begun_(now), reported_(now), log_(std::move(log)) {}

void ConnectProgress::tick(Time now) {
  if (now - reported_ >= kInterval) report(now);
}

void ConnectProgress::connected(int num_peers, Time now) {
  num_connected_ += num_peers;
  if (num_connected_ == num_peers_ && reported_ != begun_) report(now);
}

void ConnectProgress::report(Time now) {
  reported_ = now;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - begun_).count();
  log_("NCCL: rank " + std::to_string(rank_) + " is connected to " + std::to_string(num_connected_) + " of " +
       std::to_string(num_peers_) + " ranks after " + std::to_string(seconds) + " s");
}

}  // namespace zerofleet
