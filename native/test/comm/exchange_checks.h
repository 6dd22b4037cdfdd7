#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "core/error.h"
#include "test/comm/worlds.h"

// What every communicator must do, and the faults that it must report.
namespace zerofleet::test {

using namespace std::chrono_literals;

inline std::byte mark(int from, int to, std::int64_t index) {
  return static_cast<std::byte>((from * 31 + to * 7 + index * 3) % 251);
}

/// Piece sizes that differ per pair, some of them zero.
inline std::int64_t piece_size(int from, int to) {
  return (from + 2 * to) % 3 == 0 ? 0 : 1000 * (from + 1) + 10 * to + 1;
}

inline void check_all_to_all(Communicator& comm) {
  std::vector<std::byte> send;
  std::vector<Range> send_bytes, recv_bytes;
  std::int64_t recv_total = 0;
  for (int peer = 0; peer < comm.world_size(); ++peer) {
    const auto begin = static_cast<std::int64_t>(send.size());
    for (std::int64_t i = 0; i < piece_size(comm.rank(), peer); ++i) send.push_back(mark(comm.rank(), peer, i));
    send_bytes.push_back({begin, static_cast<std::int64_t>(send.size())});
    recv_bytes.push_back({recv_total, recv_total + piece_size(peer, comm.rank())});
    recv_total = recv_bytes.back().end;
  }
  std::vector<std::byte> recv(static_cast<std::size_t>(recv_total)), expected;
  for (int peer = 0; peer < comm.world_size(); ++peer) {
    for (std::int64_t i = 0; i < piece_size(peer, comm.rank()); ++i) expected.push_back(mark(peer, comm.rank(), i));
  }
  comm.all_to_all(send, one_per_rank(send_bytes), recv, one_per_rank(recv_bytes));
  CHECK(recv == expected);
}

/// Up to five messages for a pair, the last of a buffer first, with gaps between them.
inline void check_messages_in_order(Communicator& comm) {
  const auto count = [](int from, int to) { return (3 * from + to) % 6; };
  const auto size = [](int from, int to, int n) { return std::int64_t{(from + to + n) % 4} * 100; };
  constexpr std::int64_t kRoom = 500;
  std::vector<Message> sends, recvs;
  const std::int64_t total = 6 * kRoom * comm.world_size();
  std::vector<std::byte> send(static_cast<std::size_t>(total)), recv(send.size()), expected(send.size());
  const auto fill = [&](std::vector<std::byte>& bytes, const Range& range, int from, int to, int n) {
    for (std::int64_t i = range.begin; i < range.end; ++i)
      bytes[static_cast<std::size_t>(i)] = mark(from, to + 11 * n, i - range.begin);
  };
  for (int peer = 0; peer < comm.world_size(); ++peer) {
    const auto begin = [&](int n) { return total - (6 * peer + n + 1) * kRoom; };
    for (int n = 0; n < count(comm.rank(), peer); ++n) {
      sends.push_back({peer, {begin(n), begin(n) + size(comm.rank(), peer, n)}});
      fill(send, sends.back().bytes, comm.rank(), peer, n);
    }
    for (int n = 0; n < count(peer, comm.rank()); ++n) {
      recvs.push_back({peer, {begin(n), begin(n) + size(peer, comm.rank(), n)}});
      fill(expected, recvs.back().bytes, peer, comm.rank(), n);
    }
  }
  comm.all_to_all(send, sends, recv, recvs);
  CHECK(recv == expected);
}

inline void check_all_gather(Communicator& comm) {
  std::vector<Range> pieces;
  std::int64_t end = 5;  // bytes before the first piece are left alone
  for (int rank = 0; rank < comm.world_size(); ++rank) {
    pieces.push_back({end, end + piece_size(rank, 1)});
    end = pieces.back().end;
  }
  std::vector<std::byte> data(static_cast<std::size_t>(end)), expected(static_cast<std::size_t>(end));
  for (int rank = 0; rank < comm.world_size(); ++rank) {
    const Range& piece = pieces[static_cast<std::size_t>(rank)];
    for (std::int64_t i = piece.begin; i < piece.end; ++i) {
      expected[static_cast<std::size_t>(i)] = mark(rank, 0, i);
      if (rank == comm.rank()) data[static_cast<std::size_t>(i)] = mark(rank, 0, i);
    }
  }
  comm.all_gather(data, pieces);
  CHECK(data == expected);
}

/// A buffer with pieces of one size, one with pieces of many, one with none.
inline void check_all_gathers(Communicator& comm) {
  std::vector<std::vector<std::byte>> data, expected;
  std::vector<std::vector<Range>> pieces;
  for (int buffer = 0; buffer < 3; ++buffer) {
    std::int64_t end = buffer;
    auto& of_buffer = pieces.emplace_back();
    for (int rank = 0; rank < comm.world_size(); ++rank) {
      const std::int64_t size = buffer == 0 ? 100 : buffer == 1 ? piece_size(rank, 1) : 0;
      of_buffer.push_back({end, end + size});
      end += size;
    }
    data.emplace_back(static_cast<std::size_t>(end));
    expected.emplace_back(static_cast<std::size_t>(end));
    for (int rank = 0; rank < comm.world_size(); ++rank) {
      const Range& piece = of_buffer[static_cast<std::size_t>(rank)];
      for (std::int64_t i = piece.begin; i < piece.end; ++i) {
        expected.back()[static_cast<std::size_t>(i)] = mark(rank, buffer, i);
        if (rank == comm.rank()) data.back()[static_cast<std::size_t>(i)] = mark(rank, buffer, i);
      }
    }
  }
  std::vector<Gather> gathers;
  for (std::size_t buffer = 0; buffer < data.size(); ++buffer) gathers.push_back({data[buffer], pieces[buffer]});
  comm.all_gathers(gathers);
  CHECK(data == expected);
}

inline void check_collectives(Communicator& comm) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    check_all_to_all(comm);
    check_messages_in_order(comm);
    check_all_gather(comm);
    check_all_gathers(comm);
    comm.barrier();
  }
  // No rank sends anything: a round that is empty on all ranks.
  const std::vector<Range> nothing(static_cast<std::size_t>(comm.world_size()));
  comm.all_to_all({}, one_per_rank(nothing), {}, one_per_rank(nothing));
  comm.all_gather({}, nothing);
  comm.barrier();
}

inline void check_arguments(Communicator& comm) {
  std::vector<std::byte> bytes(8);
  const std::vector<Range> too_few, outside(static_cast<std::size_t>(comm.world_size()), Range{0, 9});
  CHECK(code_of([&] { comm.all_gather(bytes, too_few); }) == "invalid_argument");
  CHECK(code_of([&] { comm.all_gather(bytes, outside); }) == "invalid_argument");
  const std::vector<Message> beyond = one_per_rank(outside), own{{comm.rank(), {0, 4}}}, larger{{comm.rank(), {0, 5}}};
  const std::vector<Message> no_rank{{comm.world_size(), {0, 1}}}, out_of_order{{0, {0, 1}}, {-1, {1, 2}}};
  CHECK(code_of([&] { comm.all_to_all(bytes, beyond, bytes, beyond); }) == "invalid_argument");
  CHECK(code_of([&] { comm.all_to_all(bytes, no_rank, bytes, no_rank); }) == "invalid_argument");
  CHECK(code_of([&] { comm.all_to_all(bytes, out_of_order, bytes, out_of_order); }) == "invalid_argument");
  if (comm.world_size() == 1) CHECK(code_of([&] { comm.all_to_all(bytes, own, bytes, larger); }) == "invalid_argument");
}

inline const std::vector<std::string> kAllWell2{"none", "none"};

/// Rank 0 waits in an exchange for longer than the timeout, because rank 1 has not come to it yet.
inline void check_slow_peer(RunWorld run) {
  const auto codes = run(
      2,
      [](Communicator& comm) {
        if (comm.rank() == 1) std::this_thread::sleep_for(4s);
        comm.barrier();
      },
      1500ms);
  CHECK(codes == kAllWell2);
}

/// Rank 1 lives and comes to the exchange, but never sends the message that rank 0 waits for.
inline void check_stuck_exchange(RunWorld run) {
  std::atomic<bool> done = false;
  const auto codes = run(
      2,
      [&](Communicator& comm) {
        std::vector<std::byte> bytes(2);
        if (comm.rank() == 0) {
          const auto waits = [&] { comm.all_to_all(bytes, {}, bytes, std::vector<Message>{{1, {0, 2}}}); };
          const std::string code = code_of(waits);
          done = true;
          done.notify_all();
          throw Error(code, "seen");
        }
        comm.all_to_all(bytes, {}, bytes, {});
        done.wait(false);
      },
      300ms);
  CHECK(codes == std::vector<std::string>{"comm_timeout", "none"});
}

/// Rank 0 gives up while it waits for rank 1.
inline void check_abort(RunWorld run) {
  std::atomic<bool> done = false;
  const auto codes = run(
      2,
      [&](Communicator& comm) {
        if (comm.rank() == 1) return done.wait(false);
        const std::jthread aborter([&] { comm.abort(); });  // before the call or during it
        const std::string code = code_of([&] { comm.barrier(); });
        CHECK(code_of([&] { comm.barrier(); }) == code);
        done = true;
        done.notify_all();
        throw Error(code, "seen");
      },
      60s);
  CHECK(codes == std::vector<std::string>{"comm_failed", "none"});
}

}  // namespace zerofleet::test
