#pragma once

#include <napi.h>

#include <string>
#include <vector>

#include "train/trainer.h"

namespace zerofleet::binding {

/// "master", "exp_avg" or "exp_avg_sq". Throws Error{"invalid_argument"} for anything else.
StateId state_from_name(const std::string& name);

/// What native/js declares as NativeStepResult.
Napi::Value step_result_object(Napi::Env env, const StepResult& result);

/// [{state, param, begin, end, byte_offset}]: slices as they follow one another in a snapshot buffer.
Napi::Array slices_array(Napi::Env env, const std::vector<OwnedSlice>& slices);

}  // namespace zerofleet::binding
