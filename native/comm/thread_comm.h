#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "comm/group_member.h"

namespace zerofleet {

/// Makes communicators for ranks that are threads of one process, for tests. Entry r belongs to rank r, and may move to
/// its thread.
///
/// A rank leaves by destroying its communicator; calls of others that need the rank then throw Error{"comm_failed"}. A
/// call that waits longer than `timeout` throws Error{"comm_timeout"} and fails the whole world. Throws
/// Error{"invalid_argument"} for world_size < 1.
std::vector<std::unique_ptr<Communicator>> make_thread_comms(int world_size, std::chrono::milliseconds timeout);

/// Makes a communicator per rank among the ranks of its group (see group_member()). Each group fails separately. Throws
/// Error{"invalid_argument"} if the number of groups does not divide the world size.
std::vector<std::unique_ptr<Communicator>> make_thread_groups(int world_size, int num_groups,
                                                              std::chrono::milliseconds timeout);

/// As make_thread_groups(), for groups of `group_size` neighbouring ranks (see neighbour_member()).
std::vector<std::unique_ptr<Communicator>> make_thread_neighbours(int world_size, int group_size,
                                                                  std::chrono::milliseconds timeout);

}  // namespace zerofleet
