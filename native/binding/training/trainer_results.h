#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "train/trainer.h"

namespace zerofleet::binding {

/// Converts native/js's TrainingPosition to the fields of a snapshot and back.
void set_position(Napi::Object& object, const TrainingPosition& position);
TrainingPosition position_from(const Napi::Object& object);

/// "full", "weights" or "weights_16bit". Throws Error{"invalid_argument"} for anything else.
Restore restore_from(const std::string& name);

/// {part: bytes}
Napi::Object memory_object(Napi::Env env, const std::vector<MemoryPart>& parts);

/// Converts to native/js's NativeStepResult.
Napi::Value step_result_object(Napi::Env env, const StepResult& result);

/// Converts to native/js's EvalResult.
Napi::Value eval_result_object(Napi::Env env, const EvalResult& result);

/// [{state, param, begin, end, byte_offset}]: slices as they follow one another in a snapshot buffer.
Napi::Array slices_array(Napi::Env env, const std::vector<OwnedSlice>& slices);

}  // namespace zerofleet::binding
