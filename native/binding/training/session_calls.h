#pragma once

#include <napi.h>

#include <vector>

#include "train/trainer.h"

// Calls of a training session, of native/js/passes.ts. Objects lack only the optional fields.
namespace zerofleet::binding {

/// A PassLoss and PassRows.
struct PassCall {
  PassLoss loss;
  PassRows rows;
};
PassCall pass_from(const Napi::Value& loss, const Napi::Value& rows);
Napi::Value pass_result_object(Napi::Env env, const PassResult& result);

/// An OptimStep.
struct OptimCall {
  double lr = 0;
  UpdateSettings settings;
};
OptimCall optim_from(const Napi::Value& update);

/// Of SampleRequest[].
std::vector<SequenceRequest> requests_from(const Napi::Value& requests);
/// SampledAnswer[]
Napi::Value answers_array(Napi::Env env, const std::vector<SampledAnswer>& answers);

}  // namespace zerofleet::binding
