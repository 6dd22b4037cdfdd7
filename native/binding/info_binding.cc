#include "binding/info_binding.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "binding/convert/choice.h"
#include "binding/convert/convert.h"
#include "binding/convert/object_fields.h"
#include "binding/convert/promise.h"
#include "core/dtype.h"
#include "kernels/backends/numerics.h"
#include "model/config/merge_adapter.h"
#include "model/config/quantized_values.h"
#include "model/transformer/transformer.h"
#include "zero/optimizer/optimizer_rule.h"
#include "zero/partition/digest.h"
#include "zero/partition/param_init.h"
#include "zero/partition/shard_layout.h"
#include "zero/step/zero_options.h"

namespace zerofleet::binding {

namespace {

Napi::Value name_of(Napi::Env env, std::optional<QuantFormat> format) {
  if (!format) return env.Null();
  const auto* entry = std::ranges::find(kQuantFormatNames, *format, &std::pair<const char*, QuantFormat>::second);
  return Napi::String::New(env, entry->first);
}

}  // namespace

Napi::Value param_table(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const ModelConfig config = from_object<ModelConfig>(info[0].As<Napi::Object>());
    validate(config);
    const auto specs = param_specs(config);
    Napi::Array table = Napi::Array::New(env, specs.size());
    std::int64_t next_block = 0;
    for (std::uint32_t i = 0; i < specs.size(); ++i) {
      const ParamSpec& spec = specs[i];
      const std::int64_t num_blocks = (spec.numel() + kBlockNumel - 1) / kBlockNumel;
      Napi::Array shape = Napi::Array::New(env, spec.shape.size());
      for (std::uint32_t axis = 0; axis < spec.shape.size(); ++axis) {
        shape.Set(axis, Napi::Number::New(env, static_cast<double>(spec.shape[axis])));
      }
      Napi::Object row = Napi::Object::New(env);
      row.Set("index", Napi::Number::New(env, i));
      row.Set("name", spec.name);
      row.Set("shape", shape);
      row.Set("numel", Napi::Number::New(env, static_cast<double>(spec.numel())));
      row.Set("group", spec.group == ParamGroup::kDecay ? "decay" : "no_decay");
      row.Set("base", spec.base);
      row.Set("quantization", name_of(env, spec.quantization));
      row.Set("first_block", Napi::Number::New(env, static_cast<double>(next_block)));
      row.Set("num_blocks", Napi::Number::New(env, static_cast<double>(num_blocks)));
      table.Set(i, row);
      next_block += num_blocks;
    }
    return table;
  });
}

Napi::Value state_names(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto rule = make_optimizer_rule(from_object<UpdateOptions>(info[0].As<Napi::Object>()).optimizer);
    Napi::Array names = Napi::Array::New(env);
    for (const StateId state : rule->states()) names.Set(names.Length(), name_of(state));
    return names;
  });
}

Napi::Value fingerprint(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const Device device = device_from_name(info[0].As<Napi::String>().Utf8Value());
    const CpuIsa isa = cpu_isa_from_name(info[1].As<Napi::String>().Utf8Value());
    return Napi::String::New(env, numerics_fingerprint(device, isa));
  });
}

namespace {

f16 to_finite_f16(float value) {
  const f16 rounded = to_f16(value);
  require(std::isfinite(to_float(rounded)) || !std::isfinite(value), "weight_out_of_range",
          "a weight of " + std::to_string(value) + " does not fit in fp16; export it as bf16 or fp32");
  return rounded;
}

}  // namespace

Napi::Value cast_to_16_bit(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const std::string dtype = info[0].As<Napi::String>().Utf8Value();
    require(dtype == "bf16" || dtype == "fp16", "invalid_argument", "expected bf16 or fp16, not " + dtype);
    const auto values = floats_from(info[1]);
    auto bytes = Napi::Uint8Array::New(env, values.size() * sizeof(std::uint16_t));
    if (dtype == "bf16") {
      std::ranges::transform(values, reinterpret_cast<bf16*>(bytes.Data()), to_bf16);
    } else {
      std::ranges::transform(values, reinterpret_cast<f16*>(bytes.Data()), to_finite_f16);
    }
    return bytes;
  });
}

namespace {

std::span<double> doubles_from(const Napi::Value& value) {
  auto array = value.As<Napi::Float64Array>();
  return {array.Data(), array.ElementLength()};
}

AdapterFactors adapter_factors_from(const Napi::Value& value) {
  const auto given = value.As<Napi::Object>();
  AdapterFactors factors{floats_from(given.Get("down")), floats_from(given.Get("up")), int_field(given, "rank"),
                         int_field(given, "in"),         int_field(given, "out"),      number_field(given, "scale"),
                         bool_field(given, "in_first")};
  if (!given.Get("output_factors").IsNull()) factors.output_factors = doubles_from(given.Get("output_factors"));
  return factors;
}

}  // namespace

Napi::Value add_output_squares(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const std::int64_t begin = info[1].As<Napi::Number>().Int64Value();
    zerofleet::add_output_squares(adapter_factors_from(info[0]), begin, floats_from(info[2]), doubles_from(info[3]));
    return env.Undefined();
  });
}

Napi::Value merge_adapter(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const AdapterFactors factors = adapter_factors_from(info[0]);
    const auto values = floats_from(info[2]);
    auto bytes = Napi::Uint8Array::New(env, values.size_bytes());
    const std::span<float> merged(reinterpret_cast<float*>(bytes.Data()), values.size());
    std::ranges::copy(values, merged.begin());
    zerofleet::merge_adapter(factors, info[1].As<Napi::Number>().Int64Value(), merged);
    return bytes;
  });
}

Napi::Value quantized_values(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto given = info[0].As<Napi::Object>();
    const auto values = floats_from(info[1]);
    auto bytes = Napi::Uint8Array::New(env, values.size_bytes());
    const std::span<float> restored(reinterpret_cast<float*>(bytes.Data()), values.size());
    std::ranges::copy(values, restored.begin());
    ThreadPool pool(1);
    zerofleet::quantized_values({Device{}, &pool, best_cpu_isa()},
                                choice<QuantFormat>(given, "format", kQuantFormatNames),
                                dtype_from_name(string_field(given, "precision")),
                                {int_field(given, "rows"), int_field(given, "columns")}, restored);
    return bytes;
  });
}

Napi::Value initial_values(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const auto number = [&](std::size_t index) { return info[index].As<Napi::Number>().Int64Value(); };
    const ModelConfig config = from_object<ModelConfig>(info[0].As<Napi::Object>());
    validate(config);
    const auto specs = param_specs(config);
    const auto param = static_cast<std::size_t>(number(2));
    const std::int64_t begin = number(3), end = number(4);
    require(param < specs.size() && 0 <= begin && begin <= end && end <= specs[param].numel(), "invalid_argument",
            "there are no such elements");
    auto bytes = Napi::Uint8Array::New(env, static_cast<std::size_t>(end - begin) * sizeof(float));
    init_param(specs[param], static_cast<std::uint64_t>(number(1)), param, begin,
               {reinterpret_cast<float*>(bytes.Data()), static_cast<std::size_t>(end - begin)});
    return bytes;
  });
}

Napi::Value digest_values(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  return guarded(env, [&]() -> Napi::Value {
    const StateId state = state_from_name(info[0].As<Napi::String>().Utf8Value());
    const auto values = floats_from(info[2]);
    const auto num_blocks = (values.size() + kBlockNumel - 1) / kBlockNumel;
    std::vector<float> blocks(num_blocks * kBlockNumel);
    std::ranges::copy(values, blocks.begin());
    ThreadPool pool(1);
    const Context context{Device{}, &pool, best_cpu_isa()};
    const auto first_block = info[1].As<Napi::Number>().Int64Value();
    return Napi::String::New(env,
                             digest_blocks(context, static_cast<std::uint8_t>(state), first_block, blocks).to_hex());
  });
}

}  // namespace zerofleet::binding
