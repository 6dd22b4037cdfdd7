#pragma once

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "comm/exchange_watch.h"
#include "comm/kv_store.h"
#include "core/error.h"

namespace zerofleet {

struct PulseOptions {
  int rank = 0;
  int world_size = 1;
  std::string bind_address = "127.0.0.1";    // of this rank; must be reachable from the other ranks
  std::chrono::milliseconds timeout{60000};  // silence after which a peer counts as dead
  std::string key_prefix{};                  // of the keys in the store; unique per world
};

/// A thread that exchanges heartbeats with the other ranks of a communicator, many times within the timeout. A
/// heartbeat contains the number of exchanges that its rank has begun.
///
/// The thread is independent of the rank's computation, and stops when the process is stopped. It uses UDP: the next
/// heartbeat replaces a lost one, and a repaired network is used at once. Thread-safe.
class Pulse {
 public:
  /// Blocks until every rank was heard. Uses `store` during the call only. Throws Error{"comm_timeout"} if a rank was
  /// not heard, Error{"comm_failed"} for an address that cannot be bound.
  Pulse(const PulseOptions& options, KvStore& store);
  ~Pulse() = default;
  Pulse(const Pulse&) = delete;
  Pulse& operator=(const Pulse&) = delete;

  /// Gives up the exchange in progress and all later ones, with Error{"comm_failed"}.
  void abort();
  /// Throws the Error with which an exchange was given up, if one was.
  void check() const;

  /// Marks an exchange in progress, one at a time.
  class Exchange {
   public:
    /// `give_up`: ends the wait of the exchange. It is called at most once, on another thread, and before the
    /// destructor returns. `more`: time beyond the timeout for which the exchange may stand still. Throws the Error
    /// with which an earlier exchange was given up.
    Exchange(Pulse& pulse, std::function<void()> give_up = nullptr, std::chrono::milliseconds more = {});
    ~Exchange();
    Exchange(const Exchange&) = delete;
    Exchange& operator=(const Exchange&) = delete;

    /// Records that a message from or to a peer is complete, or that the wait for it was ended. Throws as
    /// Pulse::check() does.
    void moved();

   private:
    Pulse& pulse_;
  };

 private:
  using Time = ExchangeWatch::Time;

  /// A file descriptor, closed by the destructor.
  class Descriptor {
   public:
    explicit Descriptor(int fd) : fd_(fd) {}
    ~Descriptor();
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return fd_; }

   private:
    int fd_;
  };

  /// Address of a rank, and a random number that rejects datagrams of other jobs. Published with its layout in memory.
  struct Contact {
    std::array<std::byte, 128> address;  // a sockaddr_storage
    std::uint32_t address_bytes = 0;
    std::uint32_t reserved = 0;
    std::uint64_t secret = 0;
  };
  struct Beat {
    std::uint64_t secret = 0;  // of the receiver
    std::uint64_t num_begun = 0;
    std::uint32_t rank = 0;
    std::uint32_t reserved = 0;
  };

  Contact own_contact() const;
  void meet(KvStore& store);
  void run(const std::stop_token& stop);
  void receive_beats();
  void send_beats(std::uint64_t num_begun);
  void judge(Time last);
  std::uint64_t num_begun() const;
  void fail(const char* code, const std::string& message);

  PulseOptions options_;
  std::chrono::milliseconds interval_;
  Descriptor socket_, wake_;
  std::uint64_t secret_;
  std::vector<Contact> contacts_;  // by rank
  mutable std::mutex mutex_;
  std::condition_variable heard_;
  ExchangeWatch watch_;
  std::optional<Error> failure_;
  std::function<void()> give_up_;
  std::jthread thread_;  // last: it uses the members above
};

}  // namespace zerofleet
