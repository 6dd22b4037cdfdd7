#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/kv_store.h"
#include "comm/nccl_library.h"
#include "core/device.h"

namespace zerofleet {

struct NcclOptions {
  int rank = 0;
  int world_size = 1;
  Device device;                             // of this rank, its own within the world
  std::chrono::milliseconds timeout{60000};  // of the rendezvous, and of silence (see Pulse)
  std::string key_prefix{};                  // of the keys in the store, one for each world that meets there
  std::string bind_address = "127.0.0.1";    // of this rank's pulse, reachable from the other ranks
};

/// Ranks with a CUDA device each, through NCCL. Exchanges run on a stream of the communicator's own, or on that of queue_on().
/// Without it, memory of the device must be ready when a call begins (its stream synchronized) and is when it returns; host
/// memory goes through a buffer on the device.
///
/// A rank that is in several of these worlds must have only one exchange in progress at a time, in the same order on
/// all ranks. NCCL's kernels occupy the device until the peers' kernels answer, so two that begin in different orders
/// on two ranks may deadlock.
///
/// Blocks until every rank has connected; `store` is used during the call only. Throws Error{"comm_unavailable"} where
/// NCCL can't be opened, Error{"device_unavailable"} for a device that is not there, Error{"comm_timeout"} where a rank
/// does not come, Error{"comm_failed"} with NCCL's message, Error{"invalid_argument"} for a rank outside the world, or a
/// rank of the same world on another device in this process.
std::unique_ptr<Communicator> connect_nccl(const NcclOptions& options, KvStore& store);

/// The communicator among the ranks of this rank's group out of `num_groups` (see group_place()); `options` are those of
/// the whole world. Throws as connect_nccl() does, and Error{"invalid_argument"} for a number of groups that does not
/// divide the world.
std::unique_ptr<Communicator> connect_nccl_group(const NcclOptions& options, int num_groups, KvStore& store);

/// The same for the `group_size` ranks next to each other (see neighbour_place()).
std::unique_ptr<Communicator> connect_nccl_neighbours(const NcclOptions& options, int group_size, KvStore& store);

/// The options of a rank in its group, for either kind of group. Throws Error{"invalid_argument"} as these do.
NcclOptions nccl_group(const NcclOptions& options, int num_groups);
NcclOptions nccl_neighbours(const NcclOptions& options, int group_size);

/// Replaces the GPU of an NcclComm in tests.
struct NcclBackend {
  std::shared_ptr<const nccl::Library> library;
  std::function<bool(const std::byte*)> is_device_memory;
};

/// connect_nccl() with a library of the caller's; the device may be a CPU if the library works on host memory.
std::unique_ptr<Communicator> connect_nccl_through(const NcclBackend& backend, const NcclOptions& options,
                                                   KvStore& store);

}  // namespace zerofleet
