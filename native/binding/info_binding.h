#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// (model: object) → [{index, name, shape, numel, group, first_block, num_blocks}]
Napi::Value param_table(const Napi::CallbackInfo& info);

/// (optimizer: object) → names of the states that it keeps, the master first
Napi::Value state_names(const Napi::CallbackInfo& info);

/// (cpu_isa: string) → the numerics fingerprint
Napi::Value fingerprint(const Napi::CallbackInfo& info);

/// (dtype: string, fp32 bytes: Uint8Array) → 16-bit bytes: Uint8Array, rounded to nearest even
Napi::Value cast_to_16_bit(const Napi::CallbackInfo& info);

/// (adapter: object, begin: number, fp32 bytes: Uint8Array) → fp32 bytes: Uint8Array, with the adapter's product added
Napi::Value merge_adapter(const Napi::CallbackInfo& info);

/// (adapter: object, begin: number, fp32 bytes: Uint8Array, sums: Float64Array): adds to the sums
Napi::Value add_output_squares(const Napi::CallbackInfo& info);

/// (matrix: {format, precision, rows, columns}, fp32 bytes: Uint8Array) → fp32 bytes: Uint8Array, what products read of
/// it when it is quantized
Napi::Value quantized_values(const Napi::CallbackInfo& info);

/// (model: object, seed: number, param: number, begin: number, end: number) → fp32 bytes: Uint8Array of a fresh
/// parameter
Napi::Value initial_values(const Napi::CallbackInfo& info);

/// (state: string, first block: number, fp32 bytes: Uint8Array) → their part of the state digest, 32 hexadecimal digits
Napi::Value digest_values(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
