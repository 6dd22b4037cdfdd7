// Cases for every communicator that runs without special hardware.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "comm/solo_comm.h"
#include "core/error.h"
#include "test/comm/nccl_world.h"
#include "test/comm/worlds.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

std::vector<std::string> run_thread_comm(int world_size, const RankBody& body,
                                         std::chrono::milliseconds timeout = 30s) {
  return run_thread_world(world_size, body, timeout);
}

std::vector<std::string> run_gloo(int world_size, const RankBody& body, std::chrono::milliseconds timeout = 30s) {
  return run_gloo_world(world_size, body, timeout);
}

std::byte mark(int from, int to, std::int64_t index) {
  return static_cast<std::byte>((from * 31 + to * 7 + index * 3) % 251);
}

/// Piece sizes that differ per pair, some of them zero.
std::int64_t piece_size(int from, int to) { return (from + 2 * to) % 3 == 0 ? 0 : 1000 * (from + 1) + 10 * to + 1; }

void check_all_to_all(Communicator& comm) {
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
void check_messages_in_order(Communicator& comm) {
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

void check_all_gather(Communicator& comm) {
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
void check_all_gathers(Communicator& comm) {
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

void check_collectives(Communicator& comm) {
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

void check_arguments(Communicator& comm) {
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

const std::vector<std::string> kAllWell2{"none", "none"};

/// Rank 0 waits in an exchange for longer than the timeout, because rank 1 has not come to it yet.
void check_slow_peer(RunWorld run) {
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
void check_stuck_exchange(RunWorld run) {
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
void check_abort(RunWorld run) {
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

}  // namespace

TEST_CASE("solo_comm exchanges with itself") {
  const auto comm = make_solo_comm();
  check_collectives(*comm);
  check_arguments(*comm);
}

TEST_CASE("thread_comm exchanges pieces of any size") {
  for (const int world_size : {1, 2, 3, 5}) {
    const auto codes = run_thread_comm(world_size, check_collectives);
    CHECK(codes == std::vector<std::string>(static_cast<std::size_t>(world_size), "none"));
  }
  CHECK(run_thread_comm(2, check_arguments) == kAllWell2);
}

TEST_CASE("thread_comm: a rank that leaves, a silent rank and unequal sizes are typed errors") {
  const auto left = run_thread_comm(3, [](Communicator& comm) {
    if (comm.rank() != 1) comm.barrier();
  });
  CHECK(left == std::vector<std::string>{"comm_failed", "none", "comm_failed"});

  const auto silent = run_thread_comm(
      2,
      [](Communicator& comm) {
        if (comm.rank() == 0) comm.barrier();
        std::this_thread::sleep_for(comm.rank() == 0 ? 0ms : 400ms);
        if (comm.rank() == 1) comm.barrier();
      },
      50ms);
  CHECK(silent == std::vector<std::string>{"comm_timeout", "comm_failed"});

  check_abort(run_thread_world);

  const auto unequal = run_thread_comm(2, [](Communicator& comm) {
    std::vector<std::byte> data(20);
    comm.all_gather(data, comm.rank() == 0 ? std::vector<Range>{{0, 5}, {5, 9}} : std::vector<Range>{{0, 5}, {5, 8}});
  });
  CHECK(std::ranges::count(unequal, "comm_failed") >= 1);
}

GLOO_TEST_CASE("gloo_comm exchanges pieces of any size") {
  for (const int world_size : {1, 2, 3, 4}) {
    const auto codes = run_gloo(world_size, check_collectives);
    CHECK(codes == std::vector<std::string>(static_cast<std::size_t>(world_size), "none"));
  }
  CHECK(run_gloo(2, check_arguments) == kAllWell2);
}

GLOO_TEST_CASE("gloo_comm moves large pieces whole") {
  const auto codes = run_gloo(2, [](Communicator& comm) {
    constexpr std::int64_t kHalf = 3'000'001;
    std::vector<std::byte> data(2 * kHalf);
    const auto own = static_cast<std::ptrdiff_t>(comm.rank()) * kHalf;
    for (std::ptrdiff_t i = 0; i < kHalf; ++i) data[static_cast<std::size_t>(own + i)] = mark(comm.rank(), 0, i);
    comm.all_gather(data, std::vector<Range>{{0, kHalf}, {kHalf, 2 * kHalf}});
    bool equal = true;
    for (std::ptrdiff_t i = 0; i < 2 * kHalf; ++i) {
      equal &= data[static_cast<std::size_t>(i)] == mark(static_cast<int>(i / kHalf), 0, i % kHalf);
    }
    CHECK(equal);
  });
  CHECK(codes == kAllWell2);
}

GLOO_TEST_CASE("gloo_comm delivers bytes that a rank sent before it left") {
  for (int round = 0; round < 20; ++round) {
    const auto codes = run_gloo(2, [](Communicator& comm) {
      const bool sends = comm.rank() == 1;
      const std::vector<std::byte> send(sends ? 3'000'001 : 0, std::byte{7});
      std::vector<std::byte> recv(sends ? 0 : 3'000'001);
      const auto size_of = [](const auto& data) { return static_cast<std::int64_t>(data.size()); };
      std::vector<Message> to_first, from_second;
      sends ? to_first.push_back({0, {0, size_of(send)}}) : from_second.push_back({1, {0, size_of(recv)}});
      comm.all_to_all(send, to_first, recv, from_second);
      CHECK(std::ranges::all_of(recv, [](std::byte value) { return value == std::byte{7}; }));
    });
    REQUIRE(codes == kAllWell2);
  }
}

GLOO_TEST_CASE("gloo_comm: a rank that dies, an exchange that is stuck and an abort are typed errors, not hangs") {
  const auto left = run_gloo(2, [](Communicator& comm) {
    if (comm.rank() == 0) comm.barrier();
  });
  CHECK(left == std::vector<std::string>{"comm_failed", "none"});

  check_stuck_exchange(run_gloo_world);
  check_abort(run_gloo_world);
}

GLOO_TEST_CASE("gloo_comm waits for a rank that is slow") { check_slow_peer(run_gloo_world); }

GLOO_TEST_CASE("gloo_comm: a rank that never comes, a bad address and a bad rank are typed errors") {
  KvStore store([](const std::string&, const KvStore::Bytes&) {});
  CHECK(code_of([&] { connect_gloo({0, 2, "127.0.0.1", 100ms}, store); }) == "comm_timeout");
  CHECK(code_of([&] { connect_gloo({0, 2, "", 100ms}, store); }) == "comm_failed");
  CHECK(code_of([&] { connect_gloo({0, 2, "203.0.113.1", 100ms}, store); }) == "comm_failed");  // not of this machine
  CHECK(code_of([&] { connect_gloo({2, 2, "127.0.0.1", 100ms}, store); }) == "invalid_argument");
}

TEST_CASE("nccl_comm exchanges pieces of any size, on the device and in host memory") {
  for (const RunWorld run : {run_fake_nccl_world, run_staged_fake_nccl_world}) {
    for (const int world_size : {1, 2, 3, 5}) {
      const auto codes = run(world_size, check_collectives, 30s);
      CHECK(codes == std::vector<std::string>(static_cast<std::size_t>(world_size), "none"));
    }
    CHECK(run(2, check_arguments, 30s) == kAllWell2);
  }
}

TEST_CASE("nccl_comm: a rank that dies, an exchange that is stuck and an abort are typed errors, not hangs") {
  const auto left = run_fake_nccl_world(
      3,
      [](Communicator& comm) {
        if (comm.rank() != 1) comm.barrier();
      },
      30s);
  CHECK(left == std::vector<std::string>{"comm_failed", "none", "comm_failed"});

  check_stuck_exchange(run_fake_nccl_world);
  check_abort(run_fake_nccl_world);
}

TEST_CASE("nccl_comm waits for a rank that is slow") { check_slow_peer(run_fake_nccl_world); }

TEST_CASE("a build without Gloo refuses to connect over it") {
  if (gloo_built_in()) return;
  KvStore store([](const std::string&, const KvStore::Bytes&) {});
  CHECK(code_of([&] { connect_gloo({0, 1, "127.0.0.1", 100ms}, store); }) == "comm_unavailable");
  CHECK(code_of([&] { connect_gloo_group({0, 1, "127.0.0.1", 100ms}, 1, store); }) == "comm_unavailable");
  CHECK(code_of([&] { connect_gloo_neighbours({0, 1, "127.0.0.1", 100ms}, 1, store); }) == "comm_unavailable");
}
