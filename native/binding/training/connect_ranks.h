#pragma once

#include <string>

#include "binding/training/trainer_session.h"
#include "train/trainer_comms.h"

namespace zerofleet::binding {

/// Throws Error{"invalid_argument"} for a backend that is not known or not for this world and device.
void check_backend(const std::string& backend, const TrainerConfig& config);

/// Meets the other ranks of the session's world. Throws what the backends do, Error{"numerics_mismatch"} where this
/// rank would compute with other bits than rank 0, Error{"device_unavailable"}.
TrainerComms connect_ranks(Session& session);

}  // namespace zerofleet::binding
