/// Adapters: against the same model with their product added to its matrices.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/adapter/magnitude.h"
#include "test/devices_here.h"
#include "test/error_code.h"
#include "test/model/adapted_matrices.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using zerofleet::test::Adapted;
using zerofleet::test::adapted_of;
using zerofleet::test::adapter_targets;
using zerofleet::test::AllValues;
using zerofleet::test::apply_magnitudes;
using zerofleet::test::code_of;
using zerofleet::test::config_of;
using zerofleet::test::DeviceMachine;
using zerofleet::test::devices_here;
using zerofleet::test::Expected;
using zerofleet::test::expected_of;
using zerofleet::test::family_configs;
using zerofleet::test::merge;
using zerofleet::test::RandomModel;

namespace {

constexpr AdapterType kTypes[] = {AdapterType::kLora, AdapterType::kDora};

ModelConfig with_adapter(ModelConfig config, const std::vector<std::string>& targets, std::int64_t rank = 3,
                         AdapterType type = AdapterType::kLora) {
  config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
  config.adapter = AdapterConfig{rank, 0.75, 0, AdapterInit::kKaimingUniform, targets, {}, type};
  return config;
}

ModelConfig without_adapter(ModelConfig config) {
  config.adapter.reset();
  return config;
}

/// The largest difference, relative to the largest value.
template <class T>
double difference(const std::vector<float>& values, const std::vector<T>& expected) {
  double most = 1e-30, apart = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(expected[i])));
    apart = std::max(apart, std::abs(static_cast<double>(values[i]) - static_cast<double>(expected[i])));
  }
  return values.size() == expected.size() ? apart / most : 1;
}

void check_against_merged(const Context& ctx, const ModelConfig& config) {
  RandomModel adapted(ctx, config, DType::kF32), merged(ctx, without_adapter(config), DType::kF32);
  const std::vector<ParamSpec>& specs = adapted.specs();
  const double scale = config.adapter->scale;
  AllValues values = adapted.values();
  const std::vector<Adapted> all = adapted_of(config, specs);
  REQUIRE(!all.empty());
  for (const Adapted& one : all) merge(one, scale, values);
  AllValues applied = values;
  for (const Adapted& one : all) apply_magnitudes(one, applied);
  merged.set({applied.begin(), applied.begin() + static_cast<std::ptrdiff_t>(merged.specs().size())});
  merged.tokens = adapted.tokens;
  merged.targets = adapted.targets;
  const RandomModel::Gradients got = adapted.gradients(), expected = merged.gradients();
  CHECK(got.result.loss_sum == doctest::Approx(expected.result.loss_sum).epsilon(1e-6));
  for (std::size_t param = 0; param < merged.specs().size(); ++param) {
    CAPTURE(specs[param].name);
    const auto one = std::ranges::find(all, param, &Adapted::weight);
    if (one == all.end() || !one->magnitude) CHECK(difference(got.gradients[param], expected.gradients[param]) < 2e-5);
  }
  for (const Adapted& one : all) {
    CAPTURE(specs[one.weight].name);
    const Expected factors = expected_of(one, scale, values, expected.gradients[one.weight]);
    CHECK(difference(got.gradients[one.down], factors.down) < 2e-5);
    CHECK(difference(got.gradients[one.up], factors.up) < 2e-5);
    if (one.magnitude) CHECK(difference(got.gradients[*one.magnitude], factors.magnitude) < 2e-5);
  }
}

/// As the trainer sets it (train/norm_init.h).
std::vector<float> first_magnitude(const Context& ctx, const Adapted& one, const std::vector<float>& weight) {
  const std::int64_t rows = one.in_first ? one.in : one.out, cols = one.in_first ? one.out : one.in;
  std::vector<float> norms(static_cast<std::size_t>(one.out));
  direction_norms(ctx, {{{weight.data(), DType::kF32, rows, cols, cols}, one.in_first}, norms});
  return norms;
}

std::vector<bool> frozen_of(const std::vector<ParamSpec>& specs) {
  std::vector<bool> frozen;
  for (const ParamSpec& spec : specs) frozen.push_back(spec.base);
  return frozen;
}

}  // namespace

TEST_CASE(
    "an adapter computes what the model with merged matrices does, in every family, whichever matrices have one") {
  for (const Device& device : devices_here()) {
    const DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, config] : family_configs()) {
      for (const auto& targets : {adapter_targets(config), adapter_targets(config, 2), adapter_targets(config, 3)}) {
        for (const AdapterType type : kTypes) {
          CAPTURE(name);
          CAPTURE(targets.front());
          check_against_merged(machine.ctx, with_adapter(config, targets, 3, type));
        }
      }
    }
  }
}

TEST_CASE("an adapter whose B is zeros changes no bit of the loss, and the base's parameters keep their numbers") {
  const DeviceMachine machine({}, best_cpu_isa(), 2);
  for (const auto& [name, config] : family_configs()) {
    for (const AdapterType type : kTypes) {
      CAPTURE(name);
      const ModelConfig with = with_adapter(config, adapter_targets(config), 8, type);
      const ModelConfig base = without_adapter(with);
      const auto specs = param_specs(with), base_specs = param_specs(base);
      for (std::size_t param = 0; param < base_specs.size(); ++param) {
        CHECK(specs[param].name == base_specs[param].name);
        CHECK(specs[param].base);
      }
      RandomModel adapted(machine.ctx, with, DType::kF32), model(machine.ctx, base, DType::kF32);
      AllValues values = adapted.values();
      for (std::size_t param = base_specs.size(); param < specs.size(); ++param) {
        CHECK_FALSE(specs[param].base);
        if (specs[param].init == ParamInit::kZeros) std::ranges::fill(values[param], 0.0F);
      }
      for (const Adapted& one : adapted_of(with, specs))
        if (one.magnitude) values[*one.magnitude] = first_magnitude(machine.ctx, one, values[one.weight]);
      adapted.set(values);
      model.set({values.begin(), values.begin() + static_cast<std::ptrdiff_t>(base_specs.size())});
      adapted.tokens = model.tokens;
      adapted.targets = model.targets;
      CHECK(adapted.gradients().result.loss_sum == model.gradients().result.loss_sum);
    }
  }
}

TEST_CASE(
    "an adapter's gradients have the same bits with any number of threads, with recomputed activations, over a frozen "
    "base") {
  for (const auto& [name, config] : family_configs()) {
    for (const auto& [type, dtype] : {std::pair(AdapterType::kLora, DType::kF32),
                                      {AdapterType::kLora, DType::kBF16},
                                      {AdapterType::kDora, DType::kF32},
                                      {AdapterType::kDora, DType::kBF16}}) {
      ModelConfig with = with_adapter(config, adapter_targets(config), 8, type);
      if (config.num_experts == 0 && type == AdapterType::kLora) with.adapter->dropout = 0.3;
      CAPTURE(name);
      const DeviceMachine one({}, best_cpu_isa(), 1), three({}, best_cpu_isa(), 3);
      const RandomModel::Gradients all = RandomModel(one.ctx, with, dtype).gradients();
      TransformerOptions options;
      options.frozen = frozen_of(param_specs(with));
      options.checkpoint_activations = true;
      const RandomModel::Gradients some = RandomModel(three.ctx, with, dtype, options).gradients();
      CHECK(some.result.loss_sum == all.result.loss_sum);
      for (std::size_t param = 0; param < all.gradients.size(); ++param) {
        if (options.frozen[param]) {
          CHECK(some.gradients[param].empty());
        } else {
          CHECK(some.gradients[param] == all.gradients[param]);
        }
      }
    }
  }
}

TEST_CASE("a frozen factor of an adapter has no gradient, and the other one the same bits") {
  const DeviceMachine machine({}, best_cpu_isa(), 2);
  for (const auto& [name, config] : family_configs()) {
    CAPTURE(name);
    const ModelConfig with = with_adapter(config, adapter_targets(config), 8, AdapterType::kDora);
    const RandomModel::Gradients all = RandomModel(machine.ctx, with, DType::kF32).gradients();
    for (const char* factor : {".lora_A.", ".lora_B.", ".lora_magnitude_vector."}) {
      TransformerOptions options;
      for (const ParamSpec& spec : param_specs(with))
        options.frozen.push_back(spec.base || spec.name.find(factor) != std::string::npos);
      const RandomModel::Gradients some = RandomModel(machine.ctx, with, DType::kF32, options).gradients();
      for (std::size_t param = 0; param < all.gradients.size(); ++param)
        CHECK(some.gradients[param] == (options.frozen[param] ? std::vector<float>{} : all.gradients[param]));
    }
  }
}

// Half of the directional derivative's error is the loss' curvature, half fp32.
TEST_CASE("an adapter's gradients are the slope of the loss, through its dropout") {
  for (const Device& device : devices_here()) {
    const DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, config] : family_configs()) {
      if (config.num_experts > 0) continue;
      CAPTURE(name);
      ModelConfig with = with_adapter(config, adapter_targets(config));
      with.adapter->dropout = 0.4;
      RandomModel model(machine.ctx, with, DType::kF32);
      const RandomModel::Gradients at = model.gradients();
      double slope = 0;
      for (const std::vector<float>& gradient : at.gradients)
        for (const float value : gradient) slope += static_cast<double>(value) * static_cast<double>(value);
      const double step = 2e-3 / slope;
      model.move(at.gradients, step);
      const double above = model.gradients().result.loss_sum;
      model.move(at.gradients, -2 * step);
      const double below = model.gradients().result.loss_sum;
      CHECK((above - below) / (2 * step) == doctest::Approx(slope).epsilon(0.02));
      model.move(at.gradients, step);
      CHECK(model.gradients({7, 3, 2}).result.loss_sum != model.gradients().result.loss_sum);  // another mask
    }
  }
}

TEST_CASE("adapters that cannot be are refused") {
  const ModelConfig config = config_of("gpt2");
  const auto refused = [&](const auto& change) {
    ModelConfig with = with_adapter(config, {"c_attn"});
    change(*with.adapter);
    return code_of([&] { param_specs(with); });
  };
  CHECK(refused([](AdapterConfig& adapter) { adapter.rank = 0; }) == "invalid_model_config");
  CHECK(refused([](AdapterConfig& adapter) { adapter.rank = kMaxAdapterRank + 1; }) == "invalid_model_config");
  CHECK(refused([](AdapterConfig& adapter) { adapter.scale = 0; }) == "invalid_model_config");
  CHECK(refused([](AdapterConfig& adapter) { adapter.dropout = 1; }) == "invalid_model_config");
  CHECK(refused([](AdapterConfig& adapter) { adapter.target_modules.clear(); }) == "invalid_model_config");
  CHECK(refused([](AdapterConfig& adapter) {
          adapter.type = AdapterType::kDora;
          adapter.dropout = 0.1;
        }) == "invalid_model_config");
  for (const auto& [name, family] : family_configs()) {
    ModelConfig over_experts = with_adapter(family, {"w1", "gate_proj", "c_proj"});
    over_experts.adapter->dropout = 0.1;
    CHECK(code_of([&] { param_specs(over_experts); }) == (family.num_experts > 0 ? "invalid_model_config" : "none"));
  }
}
