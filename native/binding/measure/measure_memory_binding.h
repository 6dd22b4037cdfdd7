#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// ({params, param_numel, world_size}) → Promise of {part: bytes} of rank 0, see train/memory_probe.h
Napi::Value measure_zero_memory(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
