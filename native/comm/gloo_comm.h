#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/group_place.h"
#include "comm/kv_store.h"

namespace zerofleet {

struct GlooOptions {
  int rank = 0;
  int world_size = 1;
  std::string bind_address = "127.0.0.1";  // of this rank, reachable from the other ranks
  std::chrono::milliseconds timeout{60000};  // of the rendezvous, and of silence (see Pulse)
  std::string key_prefix{};  // of the keys in the store, one for each world that meets there
};

/// Returns true if this build has Gloo. Without it, connecting throws Error{"comm_unavailable"}.
bool gloo_built_in();

/// Ranks that are processes on one or more hosts, over TCP (Gloo). Blocks until every rank has connected; `store` is
/// used during the call only. Throws Error{"comm_timeout"} where a rank does not come, Error{"comm_failed"} for an
/// address that cannot be bound or a broken connection, Error{"invalid_argument"} for a rank outside the world.
std::unique_ptr<Communicator> connect_gloo(const GlooOptions& options, KvStore& store);

/// The communicator among the ranks of this rank's group out of `num_groups` (see group_place()), over connections of its
/// own; `options` are those of the whole world. All groups can meet in the same store at the same time. Throws as
/// connect_gloo() does, and Error{"invalid_argument"} for a number of groups that does not divide the world.
std::unique_ptr<Communicator> connect_gloo_group(const GlooOptions& options, int num_groups, KvStore& store);

/// The same for groups of `group_size` ranks next to each other (see neighbour_place()).
std::unique_ptr<Communicator> connect_gloo_neighbours(const GlooOptions& options, int group_size, KvStore& store);

}  // namespace zerofleet
