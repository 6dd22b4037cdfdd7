#include "zero/exchange/host_memory.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "test/comm/worlds.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::chrono::seconds kTimeout{60};
constexpr std::array<std::size_t, 3> kSizes{5000, 0, 70000};

std::byte value_of(int rank, std::size_t array) {
  return static_cast<std::byte>(1 + 10 * static_cast<std::size_t>(rank) + array);
}

/// Pieces of an array, of about the same size; rank 1 has none.
std::vector<Range> pieces_of(std::size_t num_bytes, int world_size) {
  const auto size = static_cast<std::int64_t>(num_bytes) / world_size;
  std::vector<Range> pieces;
  for (std::int64_t rank = 0; rank < world_size; ++rank) pieces.push_back({rank * size, (rank + 1) * size});
  if (world_size > 1) pieces[0].end = pieces[1].begin = pieces[1].end;
  return pieces;
}

/// A rank's arrays, each filled by all ranks.
struct Filled {
  std::unique_ptr<ParamMemory> memory;
  std::vector<Buffer> arrays;

  Filled(Communicator& comm, const ProcessIdentity& process)
      : memory(frozen_memory(Device{}, comm, process)), arrays(memory->allocate(kSizes)) {
    fill(0);
  }

  void fill(int round) {
    Communicator& comm = memory->communicator();
    memory->begin_writes();
    std::vector<std::vector<Range>> pieces;
    std::vector<Gather> gathers;
    pieces.reserve(arrays.size());
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      pieces.push_back(pieces_of(arrays[i].num_bytes(), comm.world_size()));
      const Range own = pieces.back()[static_cast<std::size_t>(comm.rank())];
      for (std::int64_t at = own.begin; at < own.end; ++at) arrays[i].data()[at] = value_of(comm.rank() + round, i);
      gathers.push_back({arrays[i].as<std::byte>(), pieces.back()});
    }
    memory->all_gathers(gathers);
    memory->end_writes();
  }

  bool has_all(int round) const {
    const int world_size = memory->communicator().world_size();
    for (std::size_t i = 0; i < arrays.size(); ++i) {
      const std::vector<Range> pieces = pieces_of(arrays[i].num_bytes(), world_size);
      for (int rank = 0; rank < world_size; ++rank) {
        const Range piece = pieces[static_cast<std::size_t>(rank)];
        for (std::int64_t at = piece.begin; at < piece.end; ++at) {
          if (arrays[i].data()[at] != value_of(rank + round, i)) return false;
        }
      }
    }
    return true;
  }

  /// The system refuses to write where the process may not.
  bool is_read_only() {
    const int zeros = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
    const bool refused = ::read(zeros, arrays[0].data() + arrays[0].num_bytes() - 1, 1) < 0 && errno == EFAULT;
    ::close(zeros);
    return refused;
  }
};

ProcessIdentity process_on(char host) {
  ProcessIdentity process = ProcessIdentity::here();
  process.boot[0] = host;
  return process;
}

/// Runs `body` on ranks that count as those of the given hosts.
void on_hosts(const std::string& hosts, const std::function<void(Communicator&, Filled&)>& body) {
  const auto codes = run_gloo_world(
      static_cast<int>(hosts.size()),
      [&](Communicator& comm) {
        Filled filled(comm, process_on(hosts[static_cast<std::size_t>(comm.rank())]));
        body(comm, filled);
        comm.barrier();
      },
      kTimeout);
  for (const std::string& code : codes) CHECK(code == "none");
}

bool process_has_shared_pages() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("zerofleet-base") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

GLOO_TEST_CASE("each rank's part of frozen parameters reaches all ranks, on one host or several, again and again") {
  for (const std::string hosts : {"aaa", "aabb", "abab", "abbc", "abc", "aaab"}) {
    CAPTURE(hosts);
    on_hosts(hosts, [&](Communicator& comm, Filled& filled) {
      for (const int round : {0, 1, 2}) {
        if (round > 0) filled.fill(round);
        CHECK(filled.has_all(round));
        comm.barrier();
      }
      const char host = hosts[static_cast<std::size_t>(comm.rank())];
      const bool is_shared = std::ranges::count(hosts, host) > 1;
      CHECK(filled.memory->is_shared() == is_shared);
      CHECK(filled.is_read_only() == is_shared);
    });
    CHECK_FALSE(process_has_shared_pages());
  }
}

GLOO_TEST_CASE("ranks on one host have one copy, and other hosts have another") {
  const std::string hosts = "abab";
  on_hosts(hosts, [&](Communicator& comm, Filled& filled) {
    CHECK(process_has_shared_pages());
    comm.barrier();
    if (comm.rank() == 0) {
      filled.memory->begin_writes();
      filled.arrays[2].data()[69'999] = std::byte{77};
    }
    comm.barrier();
    CHECK((filled.arrays[2].data()[69'999] == std::byte{77}) == (hosts[static_cast<std::size_t>(comm.rank())] == 'a'));
  });
}

GLOO_TEST_CASE("memory that one rank cannot map is an error on every rank") {
  std::mutex mutex;
  std::vector<std::string> messages;
  const auto codes = run_gloo_world(
      3,
      [&](Communicator& comm) {
        ProcessIdentity process = ProcessIdentity::here();
        if (comm.rank() == 0) process.pid = 1LL << 40;  // of no process
        try {
          const Filled filled(comm, process);
        } catch (const Error& error) {
          const std::lock_guard lock(mutex);
          messages.emplace_back(error.what());
          throw;
        }
      },
      kTimeout);
  for (const std::string& code : codes) CHECK(code == "shared_memory_unavailable");
  REQUIRE(messages.size() == 3);
  for (const std::string& message : messages) CHECK(message.find("memfd_create") != std::string::npos);
  CHECK_FALSE(process_has_shared_pages());
}

TEST_CASE("ranks that are threads, and a rank alone, have memory of their own") {
  for (const int world_size : {1, 3}) {
    const auto codes = run_thread_world(
        world_size,
        [&](Communicator& comm) {
          Filled filled(comm, ProcessIdentity::here());
          CHECK(filled.has_all(0));
          CHECK_FALSE(filled.memory->is_shared());
          CHECK_FALSE(filled.is_read_only());
          comm.barrier();
        },
        kTimeout);
    for (const std::string& code : codes) CHECK(code == "none");
  }
}

TEST_CASE("processes share memory on one host, in one container, of one user") {
  const ProcessIdentity here = ProcessIdentity::here();
  CHECK(here.shares_with(here));
  ProcessIdentity other = here;
  other.pid += 1;
  CHECK(here.shares_with(other));
  for (const auto& change :
       std::vector<void (*)(ProcessIdentity&)>{[](ProcessIdentity& process) { process.boot[3] = '!'; },
                                               [](ProcessIdentity& process) { process.pid_namespace += 1; },
                                               [](ProcessIdentity& process) { process.user += 1; }}) {
    other = here;
    change(other);
    CHECK_FALSE(here.shares_with(other));
  }
  other = {};
  CHECK_FALSE(other.shares_with(other));  // an unknown host
}
