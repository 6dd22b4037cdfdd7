#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// () → string[]: the operations of a training step that measure_kernel() knows.
Napi::Value kernel_names(const Napi::CallbackInfo& info);

/// ({op, model, micro_batch_size, sequence_length, precision, threads, repeats, cpu_isa}) → Promise<{shape: string,
/// operations: number, bytes: number, in_place: boolean, mean_magnitude: number, seconds: number[]}>. Measures one
/// operation on random values in the shapes of a model. See KernelCase for the counts.
Napi::Value measure_kernel(const Napi::CallbackInfo& info);

/// ({bytes, in_place, threads, repeats}) → Promise<number[]>: seconds of passes that move `bytes` bytes, half of them
/// read and half written. A pass updates an array in place or copies one.
Napi::Value measure_bandwidth(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
