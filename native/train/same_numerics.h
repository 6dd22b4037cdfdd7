#pragma once

#include <chrono>
#include <string>

#include "comm/kv_store.h"

namespace zerofleet {

/// Requires that all ranks of a world have the same numerics fingerprint: rank 0 publishes its own, the others compare.
/// This guards against a placement of ranks on different kinds of machines. Throws Error{"numerics_mismatch"} with both
/// fingerprints, Error{"comm_timeout"} if rank 0 does not connect.
void require_same_numerics(KvStore& store, int rank, const std::string& fingerprint, std::chrono::milliseconds timeout);

}  // namespace zerofleet
