#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// () → Gpu[], as the driver tells of them
Napi::Value gpus(const Napi::CallbackInfo& info);
/// () → CudaDevice[] | null: those that this process sees; null in a build without CUDA
Napi::Value cuda_devices(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
