#pragma once

#include <memory>

#include "core/system/shared_pages.h"
#include "zero/exchange/param_memory.h"

namespace zerofleet {

/// Memory of parameters that do not change in training. Ranks of CPUs that are processes on one host have one copy: each writes the
/// part it owns to where all read it, and only parts from other hosts are exchanged, once for each host. After
/// end_writes() the memory is read-only. All others, GPUs included, have copies of their own.
/// On every rank of the communicator at once. Throws what the communicator does; allocate() of the result throws
/// Error{"out_of_memory"} or Error{"shared_memory_unavailable"}, on every rank where it fails on one.
std::unique_ptr<ParamMemory> frozen_memory(Device device, Communicator& communicator, const ProcessPlace& here = ProcessPlace::here());

}  // namespace zerofleet
