#include "comm/thread_comm.h"

#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>

#include "comm/exchange_check.h"

namespace zerofleet {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// Buffers that a rank exposes to the others during a collective: that of an all-to-all, or those of gathers.
struct Offer {
  std::span<const std::byte> data;
  std::span<const Message> messages;
  std::span<const Gather> gathers;
};

void copy_offered(std::span<const std::byte> piece, std::span<std::byte> target) {
  require(piece.size() == target.size(), "comm_failed", "two ranks state different sizes for one piece");
  copy_piece(piece, target);
}

/// The meeting place of all ranks. A collective has two meetings: after the first every offer is there, and no rank
/// leaves before the second, when all copying is done. Copies are made under the mutex: a rank that fails and frees its
/// memory has to take the mutex first, so no rank reads from it any more. That costs parallelism, which tests do not
/// need.
class World {
 public:
  World(int world_size, Milliseconds timeout)
      : timeout_(timeout), offers_(static_cast<std::size_t>(world_size)), world_size_(world_size) {}

  int world_size() const { return world_size_; }

  /// Runs a collective of `rank`; `copy(offers)` runs once all offers are there.
  template <class Copy>
  void collective(int rank, const Offer& offer, Copy&& copy) {
    std::unique_lock lock(mutex_);
    offers_[static_cast<std::size_t>(rank)] = offer;
    meet(lock);
    // A rank that failed between the two meetings has taken its memory with it.
    require(failure_.empty(), "comm_failed", failure_);
    try {
      copy(std::span<const Offer>(offers_));
    } catch (...) {
      fail("rank " + std::to_string(rank) + " could not take part in an exchange");
      throw;
    }
    meet(lock);
  }

  void leave(int rank) {
    const std::lock_guard lock(mutex_);
    fail("rank " + std::to_string(rank) + " has left");
  }

 private:
  void meet(std::unique_lock<std::mutex>& lock) {
    require(failure_.empty(), "comm_failed", failure_);
    const std::uint64_t meeting = num_meetings_;
    if (++num_arrived_ == world_size_) {
      num_arrived_ = 0;
      ++num_meetings_;
      changed_.notify_all();
      return;
    }
    const auto is_done = [&] { return num_meetings_ != meeting || !failure_.empty(); };
    if (!changed_.wait_for(lock, timeout_, is_done)) {
      fail("an exchange timed out");
      throw Error("comm_timeout", "no answer from all ranks within " + std::to_string(timeout_.count()) + " ms");
    }
    require(num_meetings_ != meeting, "comm_failed", failure_);
  }

  void fail(const std::string& reason) {
    if (failure_.empty()) failure_ = reason;
    changed_.notify_all();
  }

  const Milliseconds timeout_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Offer> offers_;
  int world_size_;
  int num_arrived_ = 0;
  std::uint64_t num_meetings_ = 0;
  std::string failure_;
};

class ThreadComm final : public Communicator {
 public:
  ThreadComm(std::shared_ptr<World> world, int rank) : world_(std::move(world)), rank_(rank) {}
  ~ThreadComm() override { world_->leave(rank_); }

  int rank() const override { return rank_; }
  int world_size() const override { return world_->world_size(); }

  void all_to_all(std::span<const std::byte> send, std::span<const Message> sends, std::span<std::byte> recv,
                  std::span<const Message> recvs) override {
    check_messages(sends, world_size(), send.size(), "send");
    check_messages(recvs, world_size(), recv.size(), "recv");
    world_->collective(rank_, {send, sends, {}}, [&](std::span<const Offer> offers) {
      for (int source = 0; source < world_size(); ++source) {
        const Offer& offer = offers[static_cast<std::size_t>(source)];
        const auto sent = messages_with(offer.messages, rank_), received = messages_with(recvs, source);
        require(sent.size() == received.size(), "comm_failed", "two ranks state different numbers of messages");
        for (std::size_t i = 0; i < sent.size(); ++i) {
          copy_offered(piece_of(offer.data, sent[i].bytes), piece_of(recv, received[i].bytes));
        }
      }
    });
  }

  void all_gathers(std::span<const Gather> gathers) override {
    check_gathers(gathers, world_size());
    world_->collective(rank_, {{}, {}, gathers}, [&](std::span<const Offer> offers) {
      for (std::size_t source = 0; source < offers.size(); ++source) {
        if (static_cast<int>(source) != rank_) take_from(source, offers[source].gathers, gathers);
      }
    });
  }

  void barrier() override {
    world_->collective(rank_, {}, [](std::span<const Offer>) {});
  }

  void abort() override { world_->leave(rank_); }

 private:
  static void take_from(std::size_t source, std::span<const Gather> theirs, std::span<const Gather> ours) {
    require(theirs.size() == ours.size(), "comm_failed", "two ranks state different numbers of buffers for one gather");
    for (std::size_t i = 0; i < ours.size(); ++i) {
      copy_offered(piece_of(std::span<const std::byte>(theirs[i].data), theirs[i].pieces_bytes[source]),
                   piece_of(ours[i].data, ours[i].pieces_bytes[source]));
    }
  }

  std::shared_ptr<World> world_;
  int rank_;
};

/// A world per group, each made when its first rank comes.
template <class MemberOf>
std::vector<std::unique_ptr<Communicator>> make_groups(int world_size, Milliseconds timeout,
                                                       const MemberOf& member_of) {
  require(world_size >= 1, "invalid_argument", "a world needs at least one rank");
  std::map<int, std::shared_ptr<World>> worlds;
  std::vector<std::unique_ptr<Communicator>> comms;
  for (int rank = 0; rank < world_size; ++rank) {
    const GroupMember member = member_of(rank);
    std::shared_ptr<World>& world = worlds[member.group];
    if (!world) world = std::make_shared<World>(member.world_size, timeout);
    comms.push_back(std::make_unique<ThreadComm>(world, member.rank));
  }
  return comms;
}

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_comms(int world_size, std::chrono::milliseconds timeout) {
  require(world_size >= 1, "invalid_argument", "a world needs at least one rank");
  auto world = std::make_shared<World>(world_size, timeout);
  std::vector<std::unique_ptr<Communicator>> comms;
  for (int rank = 0; rank < world_size; ++rank) comms.push_back(std::make_unique<ThreadComm>(world, rank));
  return comms;
}

std::vector<std::unique_ptr<Communicator>> make_thread_groups(int world_size, int num_groups,
                                                              std::chrono::milliseconds timeout) {
  return make_groups(world_size, timeout, [&](int rank) { return group_member(rank, world_size, num_groups); });
}

std::vector<std::unique_ptr<Communicator>> make_thread_neighbours(int world_size, int group_size,
                                                                  std::chrono::milliseconds timeout) {
  return make_groups(world_size, timeout, [&](int rank) { return neighbour_member(rank, world_size, group_size); });
}

}  // namespace zerofleet
