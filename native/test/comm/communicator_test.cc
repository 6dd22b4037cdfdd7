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
#include "test/comm/exchange_checks.h"
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
