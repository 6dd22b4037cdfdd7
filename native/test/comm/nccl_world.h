#pragma once

#include <string>
#include <vector>

#include "comm/nccl_comm.h"
#include "test/built_files.h"
#include "test/comm/worlds.h"

namespace zerofleet::test {

/// The library of test/comm/fake_nccl, opened as the real one is.
inline std::shared_ptr<const nccl::Library> fake_nccl() {
  const std::vector<std::string> names{fake_nccl_file()};
  return nccl::open_library(names);
}

/// Ranks over the fake NCCL. All memory counts as memory of the device.
inline std::vector<std::string> run_fake_nccl_world(int world_size, const RankBody& body,
                                                    std::chrono::milliseconds timeout) {
  const NcclBackend backend{fake_nccl(), [](const std::byte*) { return true; }};
  RelayedStores stores(world_size);
  return run_threads(world_size, [&](int rank) {
    const auto comm = connect_nccl_through(backend, {rank, world_size, Device{}, timeout}, stores.store(rank));
    body(*comm);
  });
}

/// The same with memory that NCCL can't reach, so that everything goes through buffers of the communicator.
inline std::vector<std::string> run_staged_fake_nccl_world(int world_size, const RankBody& body,
                                                           std::chrono::milliseconds timeout) {
  const NcclBackend backend{fake_nccl(), [](const std::byte*) { return false; }};
  RelayedStores stores(world_size);
  return run_threads(world_size, [&](int rank) {
    const auto comm = connect_nccl_through(backend, {rank, world_size, Device{}, timeout}, stores.store(rank));
    body(*comm);
  });
}

}  // namespace zerofleet::test
