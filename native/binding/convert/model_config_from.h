#pragma once

#include <napi.h>

#include "model/config/model_config.h"

namespace zerofleet::binding {

/// The model configuration of native/js/model-config.ts. Throws Error{"invalid_argument"} for an unknown name in a field.
ModelConfig model_config_from(const Napi::Object& object);

}  // namespace zerofleet::binding
