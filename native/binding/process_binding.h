#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// () → boolean: true when from now on the kernel ends this process as soon as its parent is gone. The kernel ends it
/// also while it is stopped or busy in native code. Returns false on systems that can't. A parent that is gone already
/// is not noticed.
Napi::Value end_with_parent(const Napi::CallbackInfo& info);

/// (local_rank, local_ranks, threads) → boolean: whether all threads of this process stay on the CPUs of one NUMA node
/// from now on, which cpus_of_rank() chose.
Napi::Value stay_on_node(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
