// Cases that are specific to nccl_comm; those that it shares with other communicators are in their files.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/comm/nccl_world.h"
#include "test/devices_here.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.code() + ": " + error.what();
  }
  return "none";
}

NcclBackend fake_backend() {
  return {fake_nccl(), [](const std::byte*) { return true; }};
}

}  // namespace

TEST_CASE("without NCCL the error names the files that were tried; a library that lacks a function is refused") {
  const std::vector<std::string> names{"libno-such-nccl.so.2", "libno-such-nccl.so"};
  const std::string message = message_of([&] { nccl::open_library(names); });
  CHECK(message.starts_with("comm_unavailable"));
  for (const std::string& name : names) CHECK(message.find(name) != std::string::npos);
  const std::vector<std::string> other{"libm.so.6"};
  CHECK(message_of([&] { nccl::open_library(other); }).starts_with("comm_unavailable: libm.so.6 has no nccl"));
}

TEST_CASE("nccl_comm on a device that is not there is a typed error before anything is opened") {
  KvStore store([](const std::string&, const KvStore::Bytes&) {});
  CHECK(code_of([&] { connect_nccl({0, 1, absent_device(), 100ms}, store); }) == "device_unavailable");
  CHECK(code_of([&] { connect_nccl_group({0, 4, absent_device(), 100ms}, 3, store); }) == "invalid_argument");
  CHECK(code_of([&] { connect_nccl_neighbours({0, 4, absent_device(), 100ms}, 3, store); }) == "invalid_argument");
  CHECK(code_of([&] { connect_nccl_neighbours({0, 4, absent_device(), 100ms}, 2, store); }) == "device_unavailable");
}

TEST_CASE("nccl_comm: a rank that never comes, an id that never comes and a bad rank are typed errors") {
  std::vector<std::string> keys;
  KvStore store([&](const std::string& key, const KvStore::Bytes& value) {
    keys.push_back(key);
    CHECK(value.size() == 128);
  });
  const auto connect = [&](int rank, int world_size, std::chrono::milliseconds timeout) {
    return message_of(
        [&] { connect_nccl_through(fake_backend(), {rank, world_size, Device{}, timeout, "a/"}, store); });
  };
  CHECK(connect(1, 2, 50ms).starts_with("comm_timeout: rendezvous key 'a/nccl-unique-id'"));
  CHECK(connect(0, 2, 50ms).starts_with("comm_timeout: connecting ranks"));
  CHECK(keys == std::vector<std::string>{"a/nccl-unique-id"});
  CHECK(connect(2, 2, 50ms).starts_with("invalid_argument"));
  CHECK(connect(0, 1, 0ms).starts_with("invalid_argument"));
  CHECK(connect(0, 1, 50ms) == "none");
}

TEST_CASE("nccl_comm: ranks of a world in one process are refused on two devices, and not on one") {
  const NcclBackend backend = fake_backend();
  RelayedStores stores(2);
  const auto connect = [&](const std::string& world, int last_device) {
    auto codes = run_threads(2, [&](int rank) {
      const Device device{DeviceKind::kCpu, rank == 1 ? last_device : 0};
      connect_nccl_through(backend, {rank, 2, device, 300ms, world}, stores.store(rank));
    });
    std::ranges::sort(codes);
    return codes;
  };
  // The other rank waits for it.
  CHECK(connect("a/", 1) == std::vector<std::string>{"comm_timeout", "invalid_argument"});
  CHECK(connect("b/", 0) == std::vector<std::string>{"none", "none"});
}

TEST_CASE("nccl_comm: a failure carries NCCL's message, and the communicator is of no use after it") {
  const auto codes = run_fake_nccl_world(
      2,
      [](Communicator& comm) {
        std::vector<std::byte> data(20);
        const std::int64_t end = comm.rank() == 0 ? 9 : 8;
        const std::string message = message_of([&] { comm.all_gather(data, std::vector<Range>{{0, 5}, {5, end}}); });
        // Rank 1 gets its message whole; rank 0 sees one of another size.
        if (comm.rank() == 1) return;
        CHECK(message == "comm_failed: all_gather: NCCL: internal error (a message has another size than expected)");
        CHECK(code_of([&] { comm.barrier(); }) == "comm_failed");
      },
      30s);
  CHECK(codes == std::vector<std::string>{"none", "none"});
}

TEST_CASE("nccl_comm: ranks that connect for longer than the time-out are not taken for silent") {
  void (*set_connect_ms)(int) = nullptr;
  fake_nccl()->file.find("zfFakeNcclConnectMs", set_connect_ms);
  set_connect_ms(1100);
  const auto codes = run_fake_nccl_world(
      2,
      [](Communicator& comm) {
        std::vector<std::byte> data(20);
        comm.all_gather(data, std::vector<Range>{{0, 10}, {10, 20}});
        comm.all_gather(data, std::vector<Range>{{0, 11}, {11, 20}});
      },
      1s);
  set_connect_ms(0);
  CHECK(codes == std::vector<std::string>(2, "none"));
}

TEST_CASE("nccl_comm: ranks connect to sixteen others in each direction at once") {
  int (*most_at_once)() = nullptr;
  const auto library = fake_nccl();
  library->file.find("zfFakeNcclMostAtOnce", most_at_once);
  most_at_once();
  constexpr int kRanks = 36;
  const auto codes = run_fake_nccl_world(
      kRanks,
      [](Communicator& comm) {
        std::vector<std::byte> send(kRanks, static_cast<std::byte>(comm.rank())), recv(kRanks);
        std::vector<Range> pieces;
        for (std::int64_t r = 0; r < kRanks; ++r) pieces.push_back({r, r + 1});
        comm.all_to_all(send, one_per_rank(pieces), recv, one_per_rank(pieces));
        for (int r = 0; r < kRanks; ++r) CHECK(std::to_integer<int>(recv[static_cast<std::size_t>(r)]) == r);
      },
      30s);
  CHECK(codes == std::vector<std::string>(kRanks, "none"));
  CHECK(most_at_once() == 32);
}

TEST_CASE("groups of ranks, those apart and those next to each other, find one another through keys of their own") {
  const NcclBackend backend = fake_backend();
  RelayedStores stores(4);
  const auto codes = run_threads(4, [&](int rank) {
    const NcclOptions options{rank, 4, Device{}, 30s, "a/"};
    const auto peers = [&](const NcclOptions& of_group) {
      const auto comm = connect_nccl_through(backend, of_group, stores.store(rank));
      std::vector<std::byte> ranks(2);
      ranks[static_cast<std::size_t>(comm->rank())] = static_cast<std::byte>(rank);
      comm->all_gather(ranks, std::vector<Range>{{0, 1}, {1, 2}});
      return std::vector<int>{std::to_integer<int>(ranks[0]), std::to_integer<int>(ranks[1])};
    };
    CHECK(peers(nccl_group(options, 2)) == std::vector<int>{rank % 2, rank % 2 + 2});
    CHECK(peers(nccl_neighbours(options, 2)) == std::vector<int>{rank / 2 * 2, rank / 2 * 2 + 1});
    CHECK(nccl_group(options, 2).key_prefix != nccl_neighbours(options, 2).key_prefix);
  });
  CHECK(codes == std::vector<std::string>(4, "none"));
}
