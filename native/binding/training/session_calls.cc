#include "binding/training/session_calls.h"

#include "binding/convert/convert.h"
#include "binding/convert/object_fields.h"

namespace zerofleet::binding {
namespace {

std::vector<float> optional_floats(const Napi::Object& object, const char* name) {
  const Napi::Value value = object.Get(name);
  return value.IsUndefined() ? std::vector<float>{} : numbers_from<float>(value);
}

}  // namespace

PassCall pass_from(const Napi::Value& loss, const Napi::Value& rows) {
  const auto object = rows.As<Napi::Object>();
  return {from_object<PassLoss>(loss.As<Napi::Object>()),
          {numbers_from<std::int32_t>(object.Get("lengths")), numbers_from<std::int32_t>(object.Get("tokens")),
           numbers_from<std::int32_t>(object.Get("targets")), optional_floats(object, "weights"),
           optional_floats(object, "log_probs"), optional_floats(object, "advantages")}};
}

Napi::Value pass_result_object(Napi::Env env, const PassResult& result) {
  Napi::Object metrics = Napi::Object::New(env);
  for (const auto& [name, value] : result.metrics) metrics.Set(name, value);
  Napi::Object object = Napi::Object::New(env);
  object.Set("loss", result.loss);
  object.Set("num_targets", static_cast<double>(result.num_targets));
  object.Set("log_probs", array_of(env, result.log_probs));
  object.Set("metrics", metrics);
  return object;
}

OptimCall optim_from(const Napi::Value& update) {
  const auto object = update.As<Napi::Object>();
  const Napi::Array betas = array_field(object, "betas");
  const auto beta = [&](std::uint32_t index) { return betas.Get(index).As<Napi::Number>().DoubleValue(); };
  return {number_field(object, "lr"),
          {beta(0), beta(1), number_field(object, "eps"), number_field(object, "weight_decay"),
           number_field(object, "gradient_clipping")}};
}

std::vector<SequenceRequest> requests_from(const Napi::Value& requests) {
  const auto array = requests.As<Napi::Array>();
  std::vector<SequenceRequest> result;
  for (std::uint32_t i = 0; i < array.Length(); ++i) {
    const auto object = array.Get(i).As<Napi::Object>();
    SequenceRequest& request = result.emplace_back();
    request.prompt = numbers_from<std::int32_t>(object.Get("prompt"));
    request.max_tokens = int_field(object, "max_tokens");
    request.end_tokens = numbers_from<std::int32_t>(object.Get("stop_tokens"));
    request.draw.temperature = number_field(object, "temperature");
    request.draw.top_p = number_field(object, "top_p");
    request.draw.top_k = int_field(object, "top_k");
    request.draw.seed = static_cast<std::uint64_t>(int_field(object, "seed"));
  }
  return result;
}

Napi::Value answers_array(Napi::Env env, const std::vector<SampledAnswer>& answers) {
  Napi::Array array = Napi::Array::New(env, answers.size());
  for (std::uint32_t i = 0; i < answers.size(); ++i) {
    Napi::Object object = Napi::Object::New(env);
    object.Set("tokens", array_of(env, answers[i].tokens));
    object.Set("log_probs", array_of(env, answers[i].log_probs));
    object.Set("finish", answers[i].finish == Finish::kEndToken ? "end" : "length");
    array.Set(i, object);
  }
  return array;
}

}  // namespace zerofleet::binding
