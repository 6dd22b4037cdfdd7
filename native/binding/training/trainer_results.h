#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "train/trainer.h"

namespace zerofleet::binding {

/// What native/js declares as TrainingPosition: its fields in a snapshot, and as they come back.
void set_position(Napi::Object& object, const TrainingPosition& position);
TrainingPosition position_from(const Napi::Object& object);

/// "full", "weights" or "weights_16bit". Throws Error{"invalid_argument"} for anything else.
Restore restore_from(const std::string& name);

/// {part: bytes}
Napi::Object memory_object(Napi::Env env, const std::vector<MemoryPart>& parts);

/// What native/js declares as NativeStepResult.
Napi::Value step_result_object(Napi::Env env, const StepResult& result);

/// What native/js declares as EvalResult.
Napi::Value eval_result_object(Napi::Env env, const EvalResult& result);

/// [{state, param, begin, end, byte_offset}]: slices as they follow one another in a snapshot buffer.
Napi::Array slices_array(Napi::Env env, const std::vector<OwnedSlice>& slices);

}  // namespace zerofleet::binding
