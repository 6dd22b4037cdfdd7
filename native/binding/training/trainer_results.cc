#include "binding/training/trainer_results.h"

#include "binding/convert/convert.h"
#include "core/error.h"

namespace zerofleet::binding {
namespace {

Napi::Value nullable_value(Napi::Env env, const std::optional<double>& value) {
  return value ? Napi::Number::New(env, *value) : env.Null();
}

Napi::Array trust_ratios_array(Napi::Env env, const std::vector<TrustRatios>& groups) {
  Napi::Array array = Napi::Array::New(env, groups.size());
  for (std::uint32_t i = 0; i < groups.size(); ++i) {
    Napi::Object group = Napi::Object::New(env);
    group.Set("min", groups[i].least);
    group.Set("median", groups[i].median);
    group.Set("max", groups[i].largest);
    array.Set(i, group);
  }
  return array;
}

Napi::Object scaler_object(Napi::Env env, const LossScalerState& state) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("scale", state.scale);
  object.Set("iteration", static_cast<double>(state.iteration));
  object.Set("last_overflow_iteration", static_cast<double>(state.last_overflow_iteration));
  object.Set("hysteresis", static_cast<double>(state.hysteresis));
  object.Set("skipped_in_a_row", static_cast<double>(state.skipped_in_a_row));
  return object;
}

Napi::Value preference_value(Napi::Env env, const std::optional<PreferenceMeans>& means) {
  if (!means) return env.Null();
  Napi::Object object = Napi::Object::New(env);
  object.Set("reward_chosen", nullable_value(env, means->reward_chosen));
  object.Set("reward_rejected", nullable_value(env, means->reward_rejected));
  object.Set("margin", nullable_value(env, means->margin));
  object.Set("accuracy", means->accuracy);
  object.Set("log_prob_chosen", nullable_value(env, means->log_prob_chosen));
  object.Set("log_prob_rejected", nullable_value(env, means->log_prob_rejected));
  return object;
}

LossScalerState scaler_from(const Napi::Object& object) {
  return {number_field(object, "scale"), int_field(object, "iteration"), int_field(object, "last_overflow_iteration"),
          int_field(object, "hysteresis"), int_field(object, "skipped_in_a_row")};
}

}  // namespace

void set_position(Napi::Object& object, const TrainingPosition& position) {
  const Napi::Env env = object.Env();
  object.Set("step", static_cast<double>(position.step));
  object.Set("optimizer_steps", static_cast<double>(position.optimizer_steps));
  object.Set("skipped_steps", static_cast<double>(position.skipped_steps));
  object.Set("loss_scaler", scaler_object(env, position.loss_scaler));
}

TrainingPosition position_from(const Napi::Object& object) {
  TrainingPosition position;
  position.step = int_field(object, "step");
  position.optimizer_steps = int_field(object, "optimizer_steps");
  position.skipped_steps = int_field(object, "skipped_steps");
  position.loss_scaler = scaler_from(object_field(object, "loss_scaler"));
  return position;
}

Restore restore_from(const std::string& name) {
  if (name == "full") return Restore::kFull;
  if (name == "weights") return Restore::kWeights;
  if (name == "weights_16bit") return Restore::kWeights16Bit;
  throw Error("invalid_argument", "cannot restore '" + name + "'; it is full, weights or weights_16bit");
}

Napi::Object memory_object(Napi::Env env, const std::vector<MemoryPart>& parts) {
  Napi::Object object = Napi::Object::New(env);
  for (const MemoryPart& part : parts) object.Set(part.name, static_cast<double>(part.num_bytes));
  return object;
}

Napi::Array slices_array(Napi::Env env, const std::vector<OwnedSlice>& slices) {
  Napi::Array array = Napi::Array::New(env, slices.size());
  double byte_offset = 0;
  for (std::uint32_t i = 0; i < slices.size(); ++i) {
    const OwnedSlice& slice = slices[i];
    Napi::Object row = Napi::Object::New(env);
    row.Set("state", name_of(slice.state));
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
  seconds.Set("data", s.data);
  seconds.Set("forward", s.forward);
  seconds.Set("backward", s.backward);
  seconds.Set("exchange", s.exchange);
  seconds.Set("exchange_busy", s.exchange_busy);
  seconds.Set("optimizer", s.optimizer);
  seconds.Set("gather", s.gather);
  Napi::Object object = Napi::Object::New(env);
  object.Set("step", static_cast<double>(result.step));
  object.Set("loss", result.loss);
  object.Set("aux_loss", nullable_value(env, result.aux_loss));
  object.Set("preference", preference_value(env, result.preference));
  object.Set("grad_norm", result.grad_norm);
  object.Set("lr", result.lr);
  object.Set("loss_scale", result.loss_scale);
  object.Set("trust_ratios", trust_ratios_array(env, result.trust_ratios));
  object.Set("tokens", static_cast<double>(result.num_targets));
  object.Set("finite", result.finite);
  object.Set("skipped_steps", static_cast<double>(result.skipped_steps));
  object.Set("stop", result.flags);
  object.Set("seconds", seconds);
  Napi::Object sent = Napi::Object::New(env);
  sent.Set("reduced", static_cast<double>(result.sent.reduced));
  sent.Set("gathered", static_cast<double>(result.sent.gathered));
  sent.Set("routed", static_cast<double>(result.sent.routed));
  object.Set("sent", sent);
  return object;
}

Napi::Value eval_result_object(Napi::Env env, const EvalResult& result) {
  Napi::Object object = Napi::Object::New(env);
  object.Set("loss", result.loss);
  object.Set("tokens", static_cast<double>(result.num_targets));
  object.Set("sequences", static_cast<double>(result.num_sequences));
  object.Set("preference", preference_value(env, result.preference));
  return object;
}

}  // namespace zerofleet::binding
