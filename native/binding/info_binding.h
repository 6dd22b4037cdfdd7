#pragma once

#include <napi.h>

namespace zerofleet::binding {

/// (model: object) → [{index, name, shape, numel, group, first_block, num_blocks}]
Napi::Value param_table(const Napi::CallbackInfo& info);

/// (optimizer: object) → names of the states that it keeps, the master first
Napi::Value state_names(const Napi::CallbackInfo& info);

/// (cpu_isa: string) → the numerics fingerprint
Napi::Value fingerprint(const Napi::CallbackInfo& info);

/// (fp32 bytes: Uint8Array) → bf16 bytes: Uint8Array, rounded to nearest even
Napi::Value merge_adapter(const Napi::CallbackInfo& info);
Napi::Value cast_to_16_bit(const Napi::CallbackInfo& info);

}  // namespace zerofleet::binding
