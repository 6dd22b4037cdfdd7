#pragma once

#include <string>

#include "binding/training/trainer_session.h"
#include "train/trainer_comms.h"

namespace zerofleet::binding {

/// Throws Error{"invalid_argument"} for a backend that is not known or not for this world and device.
void check_backend(const std::string& backend, const TrainerConfig& config);

/// Connects this rank to the others of the session's world. Throws the errors of the backends and
/// Error{"device_unavailable"}. Throws Error{"numerics_mismatch"} if the numerics fingerprint differs from rank 0's.
TrainerComms connect_ranks(Session& session);

}  // namespace zerofleet::binding
