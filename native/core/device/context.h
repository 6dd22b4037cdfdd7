#pragma once

#include "core/device.h"
#include "core/system/cpu_isa.h"
#include "core/threads/thread_pool.h"

namespace zerofleet {

class Stream;

/// Execution context of a kernel call: the device and its means of parallel work, the pool on a CPU, the stream on a
/// CUDA device. Both must outlive the context. Each concurrent thread needs a context with its own pool and stream.
struct Context {
  Device device;
  ThreadPool* pool = nullptr;
  CpuIsa cpu_isa = CpuIsa::kGeneric;
  Stream* stream = nullptr;  // of `device`; may be null on a CPU
};

}  // namespace zerofleet
