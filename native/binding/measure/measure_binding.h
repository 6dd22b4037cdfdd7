#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// ({optimizer, params, threads, repeats, cpu_isa}) → Promise<{bytes_per_param: number, optimizer_seconds: number[],
/// in_place_seconds: number[]}>. Measures one step over `params` parameters (a multiple of 4096) with fp32 states and
/// gradient and bf16 parameters. Beside it, alternating, measures an in-place update of an array that moves the same
/// number of bytes: what the memory allows.
Napi::Value measure_optimizer(const Napi::CallbackInfo& info);

/// ({m, n, k, precision, threads, repeats, cpu_isa}) → Promise<number[]>: seconds of C (m, n) = A (m, k) · B (k, n)
/// with B packed beforehand, as the model's layers multiply.
Napi::Value measure_gemm(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
