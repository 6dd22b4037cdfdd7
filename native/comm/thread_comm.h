#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "comm/communicator.h"

namespace zerofleet {

/// Ranks that are threads of one process, for tests: entry r of the result is rank r's and may move to its thread.
/// A rank leaves by destroying its communicator; calls of the others that need it then throw Error{"comm_failed"}.
/// A call that waits for longer than `timeout` throws Error{"comm_timeout"} and fails the world for all.
/// Throws Error{"invalid_argument"} for world_size < 1.
std::vector<std::unique_ptr<Communicator>> make_thread_comms(int world_size, std::chrono::milliseconds timeout);

}  // namespace zerofleet
