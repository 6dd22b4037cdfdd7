#pragma once

#include <napi.h>

#include <string>

#include "core/device.h"
#include "train/trainer_config.h"
#include "zero/optimizer/optimizer_options.h"

namespace zerofleet::binding {

/// Converts native/js's TrainerConfig, section by section. Throws a TypeError for a missing or mistyped field and
/// Error{"invalid_argument"} for an unknown name; validate(TrainerConfig) checks the values.
TrainerConfig trainer_config_from(const Napi::Object& object);

/// "cpu", or "cuda" for the first device that this process sees: who starts it shows it one (CUDA_VISIBLE_DEVICES). Throws
/// Error{"invalid_argument"} for anything else.
Device device_from_name(const std::string& name);

/// The section `optimizer` alone.
OptimizerOptions optimizer_from(const Napi::Object& optimizer);

}  // namespace zerofleet::binding
