#pragma once

#include <napi.h>

#include "model/config/model_config.h"

namespace zerofleet::binding {

/// The model configuration of native/js/model-config.ts. Throws Error{"invalid_argument"} for an unknown name in a field.
ModelConfig model_config_from(const Napi::Object& object);
/// Its `adapter`. Throws the same.
AdapterConfig adapter_config_from(const Napi::Object& object);
/// `nf4` or `int8`. Throws the same.
QuantFormat quant_format_field(const Napi::Object& object, const char* name);

}  // namespace zerofleet::binding
