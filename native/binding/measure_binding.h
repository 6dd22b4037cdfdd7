#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// ({params, threads, repeats, cpu_isa}) → Promise<{adamw_seconds: number[], in_place_seconds: number[]}>: one AdamW pass
/// over `params` parameters with bf16 write (30 bytes moved per parameter), and beside it, alternating, an in-place
/// update of an array of the same number of bytes, which is what the memory allows.
Napi::Value measure_optimizer(const Napi::CallbackInfo& info);

/// ({m, n, k, precision, threads, repeats, cpu_isa}) → Promise<number[]>: seconds of C (m, n) = A (m, k) · B (k, n) with B
/// packed beforehand, as the model's layers multiply.
Napi::Value measure_gemm(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
