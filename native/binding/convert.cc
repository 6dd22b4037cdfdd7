#include "binding/convert.h"

#include "core/error.h"

namespace zerofleet::binding {
namespace {

Napi::Value field(const Napi::Object& object, const char* name, bool (Napi::Value::*is_type)() const, const char* type) {
  const Napi::Value value = object.Get(name);
  if (!(value.*is_type)()) {
    throw Napi::TypeError::New(object.Env(), std::string("field '") + name + "' must be a " + type);
  }
  return value;
}

}  // namespace

DType dtype_from_name(const std::string& name) {
  if (name == "fp32") return DType::kF32;
  if (name == "bf16") return DType::kBF16;
  throw Error("invalid_argument", "no data type '" + name + "'");
}

double number_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsNumber, "number").As<Napi::Number>().DoubleValue();
}

std::int64_t int_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsNumber, "number").As<Napi::Number>().Int64Value();
}

std::string string_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsString, "string").As<Napi::String>().Utf8Value();
}

bool bool_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsBoolean, "boolean").As<Napi::Boolean>().Value();
}

Napi::Object object_field(const Napi::Object& object, const char* name) {
  return field(object, name, &Napi::Value::IsObject, "object").As<Napi::Object>();
}

ModelConfig model_config_from(const Napi::Object& object) {
  ModelConfig config;
  config.hidden_size = int_field(object, "hidden_size");
  config.intermediate_size = int_field(object, "intermediate_size");
  config.num_hidden_layers = int_field(object, "num_hidden_layers");
  config.num_attention_heads = int_field(object, "num_attention_heads");
  config.num_key_value_heads = int_field(object, "num_key_value_heads");
  config.head_dim = int_field(object, "head_dim");
  config.vocab_size = int_field(object, "vocab_size");
  config.max_position_embeddings = int_field(object, "max_position_embeddings");
  config.rms_norm_eps = number_field(object, "rms_norm_eps");
  config.rope_theta = number_field(object, "rope_theta");
  config.tie_word_embeddings = bool_field(object, "tie_word_embeddings");
  config.initializer_range = number_field(object, "initializer_range");
  return config;
}

TrainerConfig trainer_config_from(const Napi::Object& object) {
  TrainerConfig config;
  config.model = model_config_from(object_field(object, "model"));
  config.rank = static_cast<int>(int_field(object, "rank"));
  config.world_size = static_cast<int>(int_field(object, "world_size"));
  config.num_threads = static_cast<int>(int_field(object, "threads"));
  config.cpu_isa = cpu_isa_from_name(string_field(object, "cpu_isa"));
  config.precision = dtype_from_name(string_field(object, "precision"));
  config.reduce_dtype = dtype_from_name(string_field(object, "reduce_dtype"));
  config.bucket_bytes = int_field(object, "bucket_bytes");
  config.batch = {int_field(object, "global_batch_size"), int_field(object, "micro_batch_size"),
                  int_field(object, "sequence_length")};
  config.token_file = string_field(object, "token_file");
  config.seed = static_cast<std::uint64_t>(int_field(object, "seed"));
  config.data_seed = static_cast<std::uint64_t>(int_field(object, "data_seed"));
  const Napi::Object optimizer = object_field(object, "optimizer");
  config.beta1 = number_field(optimizer, "beta1");
  config.beta2 = number_field(optimizer, "beta2");
  config.eps = number_field(optimizer, "eps");
  config.weight_decay = number_field(optimizer, "weight_decay");
  config.gradient_clipping = number_field(object, "gradient_clipping");
  const Napi::Object schedule = object_field(object, "lr_schedule");
  config.lr_schedule = {lr_schedule_type_from_name(string_field(schedule, "type")), number_field(optimizer, "lr"),
                        number_field(schedule, "min_lr"), int_field(schedule, "warmup_steps"), int_field(object, "steps")};
  return config;
}

std::span<const float> floats_from(const Napi::Value& value) {
  require(value.IsTypedArray(), "invalid_argument", "expected a Uint8Array");
  const auto bytes = value.As<Napi::Uint8Array>();
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.Data());
  require(bytes.ByteLength() % sizeof(float) == 0 && address % alignof(float) == 0, "invalid_argument",
          "expected whole, aligned 32-bit floats");
  return {reinterpret_cast<const float*>(bytes.Data()), bytes.ByteLength() / sizeof(float)};
}

}  // namespace zerofleet::binding
