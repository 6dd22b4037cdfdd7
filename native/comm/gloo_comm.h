#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "comm/communicator.h"
#include "comm/group_member.h"
#include "comm/kv_store.h"

namespace zerofleet {

struct GlooOptions {
  int rank = 0;
  int world_size = 1;
  std::string bind_address = "127.0.0.1";    // of this rank; must be reachable from the other ranks
  std::chrono::milliseconds timeout{60000};  // of the rendezvous, and of a silent peer (see Pulse)
  std::string key_prefix{};                  // of the keys in the store; unique per world
};

/// True if this build includes Gloo. Without Gloo, connecting throws Error{"comm_unavailable"}.
bool gloo_built_in();

/// Connects ranks that are processes on one or more hosts, over TCP (Gloo). Blocks until every rank has connected. Uses
/// `store` during the call only. Throws Error{"comm_timeout"} if a rank does not connect, Error{"comm_failed"} for an
/// address that cannot be bound or a broken connection, and Error{"invalid_argument"} for a rank outside the world.
std::unique_ptr<Communicator> connect_gloo(const GlooOptions& options, KvStore& store);

/// Connects the ranks of this rank's group, one of `num_groups` (see group_member()), by separate connections.
/// `options` are those of the whole world. All groups may use the same store at the same time. Throws as connect_gloo()
/// does, and Error{"invalid_argument"} if the number of groups does not divide the world size.
std::unique_ptr<Communicator> connect_gloo_group(const GlooOptions& options, int num_groups, KvStore& store);

/// As connect_gloo_group(), for groups of `group_size` neighbouring ranks (see neighbour_member()).
std::unique_ptr<Communicator> connect_gloo_neighbours(const GlooOptions& options, int group_size, KvStore& store);

}  // namespace zerofleet
