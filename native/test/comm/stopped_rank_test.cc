// A rank whose process is stopped: its connections stay open, but it sends nothing.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <string>
#include <thread>

#include "test/comm/worlds.h"

using namespace zerofleet;
using namespace zerofleet::test;
using namespace std::chrono_literals;

namespace {

/// An end of a connection over which two processes exchange the keys of their stores.
class KeyRelay {
 public:
  explicit KeyRelay(int fd)
      : fd_(fd), store_([this](const std::string& key, const KvStore::Bytes& value) {
          const std::array<std::uint64_t, 2> sizes{key.size(), value.size()};
          put(sizes.data(), sizeof sizes);
          put(key.data(), key.size());
          put(value.data(), value.size());
        }) {
    reader_ = std::thread([this] { read(); });
  }
  ~KeyRelay() {
    ::shutdown(fd_, SHUT_RDWR);
    reader_.join();
    ::close(fd_);
  }
  KvStore& store() { return store_; }

 private:
  void put(const void* data, std::size_t size) {
    REQUIRE(::send(fd_, data, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size));
  }
  bool get(void* data, std::size_t size) { return ::recv(fd_, data, size, MSG_WAITALL) == static_cast<ssize_t>(size); }
  void read() {
    std::array<std::uint64_t, 2> sizes{};
    while (get(sizes.data(), sizeof sizes)) {
      std::string key(sizes[0], ' ');
      KvStore::Bytes value(sizes[1]);
      if (!get(key.data(), key.size()) || !get(value.data(), value.size())) return;
      store_.deliver(key, value);
    }
  }

  int fd_;
  KvStore store_;
  std::thread reader_;
};

/// Meets the other process as `rank`.
void run_rank(int rank, int fd, const RankBody& body) {
  KeyRelay relay(fd);
  const auto comm = connect_gloo({rank, 2, kRanksAddress, 2s}, relay.store());
  body(*comm);
}

}  // namespace

GLOO_TEST_CASE("gloo_comm: a rank that is stopped is a time-out, not a hang") {
  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()) == 0);
  const pid_t peer = ::fork();
  REQUIRE(peer >= 0);
  if (peer == 0) {
    ::close(ends[0]);
    code_of([&] {
      run_rank(1, ends[1], [](Communicator& comm) {
        for (;;) comm.barrier();
      });
    });
    ::_exit(0);
  }
  ::close(ends[1]);
  std::string code;
  run_rank(0, ends[0], [&](Communicator& comm) {
    for (int repeat = 0; repeat < 3; ++repeat) comm.barrier();
    ::kill(peer, SIGSTOP);
    code = code_of([&] {
      for (;;) comm.barrier();  // the peer may have answered one of them before it stopped
    });
  });
  CHECK(code == "comm_timeout");
  ::kill(peer, SIGKILL);
  CHECK(::waitpid(peer, nullptr, 0) == peer);
}
