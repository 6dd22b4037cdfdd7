/// A quantized base: against the same model over what is restored of it.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/kernels/test_machine.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using zerofleet::test::adapter_targets;
using zerofleet::test::code_of;
using zerofleet::test::config_of;
using zerofleet::test::DeviceMachine;
using zerofleet::test::devices_here;
using zerofleet::test::family_configs;
using zerofleet::test::Machine;
using zerofleet::test::RandomModel;

namespace {

ModelConfig with_quantized_base(ModelConfig config, QuantFormat format) {
  config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
  config.adapter = AdapterConfig{3, 0.75, 0, AdapterInit::kKaimingUniform, adapter_targets(config, 2), {}};
  config.quantization = format;
  return config;
}

std::vector<float> restored(QuantFormat format, const ParamSpec& spec, std::vector<float> values) {
  Machine machine(best_cpu_isa(), 2);
  const std::int64_t rows = spec.shape[0], cols = spec.shape[1];
  QuantizedMatrix matrix(Device{}, format, rows, cols);
  const Matrix all{values.data(), DType::kF32, rows, cols, cols};
  quantize(machine.ctx, all, matrix);
  dequantize(machine.ctx, matrix, all);
  return values;
}

TransformerOptions over_frozen_base(const std::vector<ParamSpec>& specs, WeightUse weights) {
  TransformerOptions options;
  options.weights = weights;
  for (const ParamSpec& spec : specs) options.frozen.push_back(spec.base);
  return options;
}

}  // namespace

DEVICE_TEST_CASE(
    "quantized base: losses and gradients of every family have the bits of the model over the restored matrices") {
  for (const auto& [name, plain] : family_configs()) {
    for (const QuantFormat format : {QuantFormat::kNf4, QuantFormat::kInt8}) {
      const ModelConfig config = with_quantized_base(plain, format);
      ModelConfig unquantized = config;
      unquantized.quantization.reset();
      const std::vector<ParamSpec> specs = param_specs(config);
      for (const Device device : devices_here()) {
        CAPTURE(name + " on " + to_string(device));
        DeviceMachine machine(device);
        RandomModel quantized(machine.ctx, config, DType::kF32, over_frozen_base(specs, WeightUse::kPackedCopies));
        RandomModel over_restored(machine.ctx, unquantized, DType::kF32, over_frozen_base(specs, WeightUse::kInPlace));
        auto values = over_restored.values();
        for (std::size_t param = 0; param < specs.size(); ++param)
          if (specs[param].quantization) values[param] = restored(format, specs[param], values[param]);
        over_restored.set(values);
        CHECK(quantized.gradients() == over_restored.gradients());
        CHECK(quantized.model().forward(quantized.leaf({})).loss_sum ==
              over_restored.model().forward(over_restored.leaf({})).loss_sum);
      }
    }
  }
}

TEST_CASE("quantized base: the frozen matrices of layers are quantized, and nothing else is") {
  for (const auto& [name, plain] : family_configs()) {
    CAPTURE(name);
    ModelConfig config = with_quantized_base(plain, QuantFormat::kInt8);
    config.adapter->modules_to_save = {"lm_head", "gate"};
    int num_quantized = 0;
    for (const ParamSpec& spec : param_specs(config)) {
      CAPTURE(spec.name);
      const bool is_gate = spec.name.ends_with(".gate.weight") || spec.name.ends_with(".shared_expert_gate.weight"),
                 is_adapter = spec.name.find(".lora_") != std::string::npos;
      CHECK(spec.quantization.has_value() == (spec.layer >= 0 && spec.shape.size() == 2 && !is_gate && !is_adapter));
      num_quantized += spec.quantization ? 1 : 0;
    }
    CHECK(num_quantized > 0);
    config.quantization.reset();
    for (const ParamSpec& spec : param_specs(config)) CHECK(!spec.quantization);
  }
}

TEST_CASE("quantized base: what cannot be is refused") {
  Machine machine(best_cpu_isa(), 1);
  const auto by_name = [](const std::string& wanted) {
    for (const auto& [name, config] : family_configs())
      if (name == wanted) return config;
    throw Error("internal", "no such family");
  };
  ModelConfig config = with_quantized_base(by_name("llama"), QuantFormat::kNf4);
  const auto make = [&] { Transformer(machine.ctx, config, DType::kF32, 1, 8, {}); };
  CHECK(code_of(make) == "none");
  config.adapter->target_modules = {"q_proj"};
  config.adapter->modules_to_save = {"v_proj"};
  CHECK(code_of(make) == "invalid_model_config");
  config.adapter.reset();
  CHECK(code_of(make) == "invalid_model_config");
}

TEST_CASE("quantized base: a model takes matrices of its parameters' shapes and format, and no other") {
  Machine machine(best_cpu_isa(), 1);
  const ModelConfig config = with_quantized_base(config_of("gpt2"), QuantFormat::kNf4);
  RandomModel random(machine.ctx, config, DType::kF32);
  const auto params = random.params();
  CHECK(code_of([&] { random.model().bind_params(params); }) == "invalid_argument");
  const std::vector<ParamSpec>& specs = random.specs();
  std::vector<const QuantizedMatrix*> matrices(specs.size(), nullptr);
  const QuantizedMatrix other(Device{}, QuantFormat::kInt8, 2, 2);
  matrices[1] = &other;
  CHECK(code_of([&] { random.model().bind_params(params, matrices); }) == "invalid_argument");
}
