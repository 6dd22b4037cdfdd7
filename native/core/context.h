#pragma once

#include "core/cpu_isa.h"
#include "core/device.h"
#include "core/thread_pool.h"

namespace zerofleet {

/// What a kernel call needs besides its arguments: the device it runs on and that device's means of parallel work.
/// The pool must outlive the context. A CUDA context will carry its stream here.
struct Context {
  Device device;
  ThreadPool* pool = nullptr;
  CpuIsa cpu_isa = CpuIsa::kGeneric;
};

}  // namespace zerofleet
