#pragma once

#include <memory>

#include "comm/communicator.h"

namespace zerofleet {

/// The communicator of a world of one: every exchange is a copy.
std::unique_ptr<Communicator> make_solo_comm();

}  // namespace zerofleet
