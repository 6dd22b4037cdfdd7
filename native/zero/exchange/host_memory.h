#pragma once

#include <memory>

#include "core/system/shared_pages.h"
#include "zero/exchange/param_memory.h"

namespace zerofleet {

/// Makes the memory of parameters that do not change in training.
///
/// CPU ranks that are processes on one host share one copy. Each writes the part that it owns to the shared copy, and
/// only parts from other hosts are exchanged, once per host. The memory is read-only after end_writes(). All other
/// ranks, GPUs included, have copies of their own.
///
/// Must be called on every rank of the communicator at once. Throws errors of the communicator. allocate() of the
/// result throws Error{"out_of_memory"} or Error{"shared_memory_unavailable"}, on every rank if it fails on one.
std::unique_ptr<ParamMemory> frozen_memory(Device device, Communicator& communicator,
                                           const ProcessIdentity& here = ProcessIdentity::here());

}  // namespace zerofleet
