#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/group_place.h"

namespace zerofleet {

/// Ranks that are threads of one process, for tests: entry r of the result is rank r's and may move to its thread.
/// A rank leaves by destroying its communicator; calls of the others that need it then throw Error{"comm_failed"}.
/// A call that waits for longer than `timeout` throws Error{"comm_timeout"} and fails the world for all.
/// Throws Error{"invalid_argument"} for world_size < 1.
std::vector<std::unique_ptr<Communicator>> make_thread_comms(int world_size, std::chrono::milliseconds timeout);

/// Worlds within a world: entry r is rank r's communicator among the ranks of its group, as group_place() has them. Each
/// group fails on its own. Throws Error{"invalid_argument"} for a number of groups that does not divide the world.
std::vector<std::unique_ptr<Communicator>> make_thread_groups(int world_size, int num_groups,
                                                              std::chrono::milliseconds timeout);

/// The same for groups of `group_size` ranks next to each other, as neighbour_place() has them.
std::vector<std::unique_ptr<Communicator>> make_thread_neighbours(int world_size, int group_size,
                                                                  std::chrono::milliseconds timeout);

}  // namespace zerofleet
