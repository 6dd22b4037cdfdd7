/// Frozen parameters: nothing is computed for them, and the others get the same bits.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "test/devices_here.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using zerofleet::test::DeviceMachine;
using zerofleet::test::devices_here;
using zerofleet::test::family_configs;
using zerofleet::test::RandomModel;

namespace {

/// A set of trained parameters, selected by name.
struct Choice {
  std::string what;
  std::function<bool(const std::string&)> trains;
};

bool contains(const std::string& name, const std::string& part) { return name.find(part) != std::string::npos; }

/// Layers are named layers.N. or h.N. in all families.
bool is_in_layer(const std::string& name, int layer) { return contains(name, "." + std::to_string(layer) + "."); }

std::vector<Choice> choices() {
  return {
      {"everything", [](const std::string&) { return true; }},
      {"the last layer", [](const std::string& name) { return is_in_layer(name, 1); }},
      {"the first layer", [](const std::string& name) { return is_in_layer(name, 0); }},
      {"vectors", [](const std::string& name) { return contains(name, "norm") || contains(name, "ln_") || contains(name, "bias"); }},
      {"all but vectors",
       [](const std::string& name) { return !contains(name, "norm") && !contains(name, "ln_") && !contains(name, "bias"); }},
      {"the first parameter", [](const std::string& name) { return contains(name, "embed_tokens") || contains(name, "wte"); }},
      {"all but embeddings and head",
       [](const std::string& name) {
         return !contains(name, "embed_tokens") && !contains(name, "wte") && !contains(name, "wpe") && !contains(name, "lm_head");
       }},
      {"every other name", [](const std::string& name) { return std::hash<std::string>{}(name) % 2 == 0; }},
  };
}

std::vector<bool> frozen_of(const ModelConfig& config, const Choice& choice) {
  std::vector<bool> frozen;
  for (const ParamSpec& spec : param_specs(config)) frozen.push_back(!choice.trains(spec.name));
  return frozen;
}

void check(const DeviceMachine& machine, const ModelConfig& config, DType dtype, bool checkpoints) {
  TransformerOptions options;
  options.checkpoint_activations = checkpoints;
  const RandomModel::Gradients all = RandomModel(machine.ctx, config, dtype, options).gradients();
  for (const Choice& choice : choices()) {
    CAPTURE(choice.what);
    options.frozen = frozen_of(config, choice);
    const RandomModel::Gradients some = RandomModel(machine.ctx, config, dtype, options).gradients();
    CHECK(some.result.loss_sum == all.result.loss_sum);
    std::vector<std::size_t> expected;
    for (const std::size_t param : all.order)
      if (!options.frozen[param]) expected.push_back(param);
    CHECK(some.order == expected);
    for (const std::size_t param : expected) CHECK(some.of[param] == all.of[param]);
  }
}

}  // namespace

TEST_CASE("frozen parameters have no gradient, and the others the same bits, in every family") {
  for (const Device& device : devices_here()) {
    const DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, config] : family_configs()) {
      CAPTURE(name);
      REQUIRE(config.num_hidden_layers == 2);
      check(machine, config, DType::kF32, false);
      check(machine, config, DType::kBF16, true);
    }
  }
}
