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
  Device device;                             // of this rank; no other rank of the world uses it
  std::chrono::milliseconds timeout{60000};  // of the rendezvous, and of a silent peer (see Pulse)
  std::string key_prefix{};                  // of the keys in the store; unique per world
  std::string bind_address = "127.0.0.1";    // of this rank's pulse; must be reachable from the other ranks
};

/// Connects ranks that have a CUDA device each, through NCCL. Blocks until every rank has connected. Uses `store`
/// during the call only.
///
/// Exchanges run on a stream of the communicator, or on that of queue_on(). Without queue_on(), device memory must be
/// ready when a call begins (its stream synchronized), and is ready when the call returns. Host memory passes through a
/// buffer on the device.
///
/// A rank in several such worlds must have one exchange in progress at a time, in the same order on all ranks. NCCL's
/// kernels occupy the device until the peers' kernels answer, so exchanges in different orders may deadlock.
///
/// Throws Error{"comm_unavailable"} if NCCL cannot be opened, Error{"device_unavailable"} for a missing device,
/// Error{"comm_timeout"} if a rank does not connect, and Error{"comm_failed"} with NCCL's message. Throws
/// Error{"invalid_argument"} for a rank outside the world, and if this process has a rank of the world on another
/// device.
std::unique_ptr<Communicator> connect_nccl(const NcclOptions& options, KvStore& store);

/// Connects the ranks of this rank's group, one of `num_groups` (see group_member()). `options` are those of the whole
/// world. Throws as connect_nccl() does, and Error{"invalid_argument"} if the number of groups does not divide the
/// world size.
std::unique_ptr<Communicator> connect_nccl_group(const NcclOptions& options, int num_groups, KvStore& store);

/// As connect_nccl_group(), for groups of `group_size` neighbouring ranks (see neighbour_member()).
std::unique_ptr<Communicator> connect_nccl_neighbours(const NcclOptions& options, int group_size, KvStore& store);

/// Returns the options of a rank within its group. Throws Error{"invalid_argument"} as the functions above.
NcclOptions nccl_group(const NcclOptions& options, int num_groups);
NcclOptions nccl_neighbours(const NcclOptions& options, int group_size);

/// A substitute for NCCL and the GPU, for tests.
struct NcclBackend {
  std::shared_ptr<const nccl::Library> library;
  std::function<bool(const std::byte*)> is_device_memory;
};

/// As connect_nccl(), with the caller's library. The device may be a CPU if the library works on host memory.
std::unique_ptr<Communicator> connect_nccl_through(const NcclBackend& backend, const NcclOptions& options,
                                                   KvStore& store);

}  // namespace zerofleet
