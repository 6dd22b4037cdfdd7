#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// () → Gpu[], as the driver reports them
Napi::Value gpus(const Napi::CallbackInfo& info);
/// (uuid) → () → number[]: listens to that GPU's events until the function is forgotten, which returns the XIDs since
/// its last call
Napi::Value watch_gpu(const Napi::CallbackInfo& info);
/// (uuid) → () → number | null: the share of time in which that GPU is busy; null where its driver does not measure it
Napi::Value measure_gpu(const Napi::CallbackInfo& info);
/// () → CudaDevice[] | null: those that this process sees; null in a build without CUDA
Napi::Value cuda_devices(const Napi::CallbackInfo& info);
/// () → string | null: reason for which an installed driver has no CUDA devices
Napi::Value cuda_problem(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
