#pragma once

#include "core/device.h"
#include "core/system/cpu_isa.h"
#include "core/threads/thread_pool.h"

namespace zerofleet {

class Stream;

/// What a kernel call needs besides its arguments: the device it runs on and that device's means of parallel work, the
/// pool on a CPU, the stream on a CUDA device. Both must outlive the context. A thread that works beside another one
/// needs a context with a pool and a stream of its own.
struct Context {
  Device device;
  ThreadPool* pool = nullptr;
  CpuIsa cpu_isa = CpuIsa::kGeneric;
  Stream* stream = nullptr;  // of `device`; may be null on a CPU
};

}  // namespace zerofleet
