#pragma once

#include "core/device/context.h"
#include "core/device/stream.h"
#include "core/system/cpu_isa.h"
#include "core/threads/thread_pool.h"

namespace zerofleet::bench {

/// A context on one device with a pool and a stream of its own.
struct DeviceMachine {
  explicit DeviceMachine(Device device, CpuIsa isa = best_cpu_isa(), int num_threads = 1)
      : pool(num_threads), stream(device), ctx{device, &pool, isa, &stream} {}
  DeviceMachine(const DeviceMachine&) = delete;
  DeviceMachine& operator=(const DeviceMachine&) = delete;

  ThreadPool pool;
  Stream stream;
  Context ctx;
};

}  // namespace zerofleet::bench
