#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "comm/gloo_comm.h"
#include "comm/thread_comm.h"
#include "test/error_code.h"

namespace zerofleet::test {

/// Runs one thread per rank and returns the error code of each, "none" for success.
inline std::vector<std::string> run_threads(int world_size, const std::function<void(int rank)>& rank_main) {
  std::vector<std::string> codes(static_cast<std::size_t>(world_size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] { codes[static_cast<std::size_t>(rank)] = code_of([&] { rank_main(rank); }); });
  }
  for (auto& thread : threads) thread.join();
  return codes;
}

/// Where ranks meet. Gloo takes the first client of a port for its other rank. At 127.0.0.1 that client may belong to
/// another test that looks for a server which had this port before.
inline constexpr const char* kRanksAddress = "127.0.0.2";

/// A rendezvous store per rank of one process; replaces the agent: a key that one rank publishes reaches all.
class RelayedStores {
 public:
  explicit RelayedStores(int world_size) {
    for (int rank = 0; rank < world_size; ++rank) {
      stores_.push_back(std::make_unique<KvStore>([this](const std::string& key, const KvStore::Bytes& value) {
        for (const auto& store : stores_) store->deliver(key, value);
      }));
    }
  }
  KvStore& store(int rank) { return *stores_[static_cast<std::size_t>(rank)]; }

 private:
  std::vector<std::unique_ptr<KvStore>> stores_;
};

using RankBody = std::function<void(Communicator&)>;

/// Runs `body` on every rank, each in a thread; a rank that ends gives up its communicator. Returns the error codes.
using RunWorld = std::vector<std::string> (*)(int world_size, const RankBody& body, std::chrono::milliseconds timeout);

inline std::vector<std::string> run_thread_world(int world_size, const RankBody& body,
                                                 std::chrono::milliseconds timeout) {
  auto comms = make_thread_comms(world_size, timeout);
  return run_threads(world_size, [&](int rank) {
    const auto comm = std::move(comms[static_cast<std::size_t>(rank)]);
    body(*comm);
  });
}

inline std::vector<std::string> run_gloo_world(int world_size, const RankBody& body,
                                               std::chrono::milliseconds timeout) {
  RelayedStores stores(world_size);
  return run_threads(world_size, [&](int rank) {
    const auto comm = connect_gloo({rank, world_size, kRanksAddress, timeout}, stores.store(rank));
    body(*comm);
  });
}

/// Returns those of the given transports that this build has.
inline std::vector<RunWorld> built_in(std::vector<RunWorld> worlds) {
  if (!gloo_built_in()) std::erase(worlds, &run_gloo_world);
  return worlds;
}

/// A case about Gloo, counted as skipped in a build without it.
#define GLOO_TEST_CASE(name) TEST_CASE(name* doctest::skip(!zerofleet::gloo_built_in()))

}  // namespace zerofleet::test
