#pragma once

#include <memory>

#include "comm/communicator.h"

namespace zerofleet {

/// Makes the communicator of a world with one rank. Every exchange is a copy.
std::unique_ptr<Communicator> make_solo_comm();

}  // namespace zerofleet
