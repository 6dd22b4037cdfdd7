#include "comm/exchange_watch.h"

#include <algorithm>

namespace zerofleet {

ExchangeWatch::ExchangeWatch(int rank, int world_size, std::chrono::milliseconds timeout, Time now)
    : rank_(rank), timeout_(timeout), peers_(static_cast<std::size_t>(world_size)) {
  start_anew(now);
  peers_[static_cast<std::size_t>(rank)].was_heard = true;
}

void ExchangeWatch::heard(int peer, std::uint64_t num_begun, Time now) {
  Peer& of_peer = peers_[static_cast<std::size_t>(peer)];
  of_peer.heard_at = now;
  of_peer.was_heard = true;
  of_peer.num_begun = std::max(of_peer.num_begun, num_begun);  // datagrams may overtake each other
}

bool ExchangeWatch::has_heard_all() const {
  return std::ranges::all_of(peers_, [](const Peer& peer) { return peer.was_heard; });
}

void ExchangeWatch::start_anew(Time now) {
  for (Peer& peer : peers_) peer.heard_at = now;
  moved_at_ = now;
}

void ExchangeWatch::begin(Time now, std::chrono::milliseconds more) {
  ++num_begun_;
  in_exchange_ = true;
  more_ = more;
  moved_at_ = now;
}

std::optional<std::string> ExchangeWatch::reason_to_give_up(Time now) {
  if (!in_exchange_) return std::nullopt;
  const auto for_so_long = [](std::chrono::milliseconds time) {
    return " for " + std::to_string(time.count()) + " ms";
  };
  for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
    if (rank == rank_) continue;
    const Peer& peer = peers_[static_cast<std::size_t>(rank)];
    if (peer.num_begun != kHasLeft && now - peer.heard_at >= timeout_) {
      return "nothing was heard of rank " + std::to_string(rank) + for_so_long(timeout_);
    }
    if (peer.num_begun < num_begun_) moved_at_ = now;  // the exchange can't move before the peer has come
  }
  if (now - moved_at_ >= timeout_ + more_) {
    return "nothing moved" + for_so_long(timeout_ + more_) + ", although all ranks have come to the exchange";
  }
  return std::nullopt;
}

}  // namespace zerofleet
