#pragma once

#include <chrono>
#include <string>

#include "comm/kv_store.h"

namespace zerofleet {

/// Ranks of one world must compute with the same bits: rank 0 publishes its fingerprint, and each other one compares. A
/// guard, for who places ranks keeps to one kind of machine. Throws Error{"numerics_mismatch"} with both,
/// "comm_timeout" where rank 0 does not come.
void require_same_numerics(KvStore& store, int rank, const std::string& fingerprint, std::chrono::milliseconds timeout);

}  // namespace zerofleet
