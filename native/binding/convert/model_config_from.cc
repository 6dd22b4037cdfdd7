#include "binding/convert/model_config_from.h"

#include <string>
#include <vector>

#include "binding/convert/choice.h"
#include "binding/convert/convert.h"

namespace zerofleet::binding {
namespace {

RopeScaling rope_scaling_from(const Napi::Object& object) {
  RopeScaling scaling;
  scaling.type = choice<RopeScalingType>(object, "type",
                                         {{"none", RopeScalingType::kNone},
                                          {"linear", RopeScalingType::kLinear},
                                          {"llama3", RopeScalingType::kLlama3},
                                          {"yarn", RopeScalingType::kYarn}});
  scaling.factor = number_field(object, "factor");
  scaling.low_freq_factor = number_field(object, "low_freq_factor");
  scaling.high_freq_factor = number_field(object, "high_freq_factor");
  scaling.original_max_position_embeddings = int_field(object, "original_max_position_embeddings");
  scaling.beta_fast = number_field(object, "beta_fast");
  scaling.beta_slow = number_field(object, "beta_slow");
  scaling.attention_factor = number_field(object, "attention_factor");
  scaling.mscale = number_field(object, "mscale");
  scaling.mscale_all_dim = number_field(object, "mscale_all_dim");
  scaling.truncate = bool_field(object, "truncate");
  return scaling;
}

void read_sizes(const Napi::Object& object, ModelConfig& config) {
  config.hidden_size = int_field(object, "hidden_size");
  config.intermediate_size = int_field(object, "intermediate_size");
  config.num_hidden_layers = int_field(object, "num_hidden_layers");
  config.num_attention_heads = int_field(object, "num_attention_heads");
  config.num_key_value_heads = int_field(object, "num_key_value_heads");
  config.head_dim = int_field(object, "head_dim");
  config.vocab_size = int_field(object, "vocab_size");
  config.max_position_embeddings = int_field(object, "max_position_embeddings");
}

void read_attention(const Napi::Object& object, ModelConfig& config) {
  config.positions = choice<PositionType>(object, "positions",
                                          {{"rope", PositionType::kRope}, {"learned", PositionType::kLearned}});
  config.rope_theta = number_field(object, "rope_theta");
  config.rope_scaling = rope_scaling_from(object_field(object, "rope_scaling"));
  config.qkv_bias = bool_field(object, "qkv_bias");
  config.output_bias = bool_field(object, "output_bias");
  config.qk_norm = bool_field(object, "qk_norm");
  const Napi::Array windows = array_field(object, "layer_windows");
  for (std::uint32_t i = 0; i < windows.Length(); ++i) {
    config.layer_windows.push_back(windows.Get(i).ToNumber().Int64Value());
  }
}

void read_mlp(const Napi::Object& object, ModelConfig& config) {
  config.mlp = choice<MlpType>(
      object, "mlp", {{"swiglu", MlpType::kSwiglu}, {"gelu", MlpType::kGelu}, {"gelu_tanh", MlpType::kGeluTanh}});
  config.mlp_bias = bool_field(object, "mlp_bias");
  config.num_experts = int_field(object, "num_experts");
  config.experts_per_token = int_field(object, "experts_per_token");
  config.router_aux_loss_coef = number_field(object, "router_aux_loss_coef");
}

std::vector<std::string> names_field(const Napi::Object& object, const char* name) {
  const Napi::Array array = array_field(object, name);
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < array.Length(); ++i) names.push_back(array.Get(i).ToString().Utf8Value());
  return names;
}

}  // namespace

AdapterConfig adapter_config_from(const Napi::Object& object) {
  AdapterConfig adapter;
  adapter.type = choice<AdapterType>(object, "type", {{"lora", AdapterType::kLora}, {"dora", AdapterType::kDora}});
  adapter.rank = int_field(object, "rank");
  adapter.scale = number_field(object, "scale");
  adapter.dropout = number_field(object, "dropout");
  adapter.init = choice<AdapterInit>(
      object, "init", {{"kaiming_uniform", AdapterInit::kKaimingUniform}, {"gaussian", AdapterInit::kGaussian}});
  adapter.target_modules = names_field(object, "target_modules");
  adapter.modules_to_save = names_field(object, "modules_to_save");
  return adapter;
}

ModelConfig model_config_from(const Napi::Object& object) {
  ModelConfig config;
  config.naming = choice<ParamNaming>(
      object, "naming", {{"gpt2", ParamNaming::kGpt2}, {"llama", ParamNaming::kLlama}, {"mixtral", ParamNaming::kMixtral}});
  config.norm = choice<NormType>(object, "norm", {{"rms", NormType::kRms}, {"layer", NormType::kLayer}});
  config.norm_eps = number_field(object, "norm_eps");
  read_sizes(object, config);
  read_attention(object, config);
  read_mlp(object, config);
  config.tie_word_embeddings = bool_field(object, "tie_word_embeddings");
  config.embedding_dropout = number_field(object, "embedding_dropout");
  config.attention_dropout = number_field(object, "attention_dropout");
  config.residual_dropout = number_field(object, "residual_dropout");
  config.initializer_range = number_field(object, "initializer_range");
  config.residual_initializer_range = number_field(object, "residual_initializer_range");
  if (!object.Get("adapter").IsNull()) config.adapter = adapter_config_from(object_field(object, "adapter"));
  if (!object.Get("quantization").IsNull()) config.quantization = quant_format_field(object, "quantization");
  return config;
}

QuantFormat quant_format_field(const Napi::Object& object, const char* name) {
  return choice<QuantFormat>(object, name, {{"nf4", QuantFormat::kNf4}, {"int8", QuantFormat::kInt8}});
}

}  // namespace zerofleet::binding
