#include "binding/trainer_results.h"

#include <array>

#include "core/error.h"

namespace zerofleet::binding {
namespace {

constexpr std::array kStateNames{"master", "exp_avg", "exp_avg_sq"};

}  // namespace

StateId state_from_name(const std::string& name) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (name == kStateNames[i]) return static_cast<StateId>(i);
  }
  throw Error("invalid_argument", "no optimizer state '" + name + "'");
}

Napi::Array slices_array(Napi::Env env, const std::vector<OwnedSlice>& slices) {
  Napi::Array array = Napi::Array::New(env, slices.size());
  double byte_offset = 0;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    const OwnedSlice& slice = slices[i];
    Napi::Object row = Napi::Object::New(env);
    row.Set("state", kStateNames[static_cast<std::size_t>(slice.state)]);
    row.Set("param", static_cast<double>(slice.param));
    row.Set("begin", static_cast<double>(slice.elements.begin));
    row.Set("end", static_cast<double>(slice.elements.end));
    row.Set("byte_offset", byte_offset);
    byte_offset += static_cast<double>(slice.elements.size()) * sizeof(float);
    array.Set(i, row);
  }
  return array;
}

Napi::Value step_result_object(Napi::Env env, const StepResult& result) {
  const StepSeconds& s = result.seconds;
  Napi::Object seconds = Napi::Object::New(env);
  seconds.Set("total", s.total);
  seconds.Set("forward", s.forward);
  seconds.Set("backward", s.backward);
  seconds.Set("exchange", s.exchange);
  seconds.Set("optimizer", s.optimizer);
  seconds.Set("gather", s.gather);
  Napi::Object object = Napi::Object::New(env);
  object.Set("step", static_cast<double>(result.step));
  object.Set("loss", result.loss);
  object.Set("grad_norm", result.grad_norm);
  object.Set("lr", result.lr);
  object.Set("tokens", static_cast<double>(result.num_targets));
  object.Set("finite", result.finite);
  object.Set("skipped_steps", static_cast<double>(result.skipped_steps));
  object.Set("stop", result.flags);
  object.Set("seconds", seconds);
  return object;
}

}  // namespace zerofleet::binding
