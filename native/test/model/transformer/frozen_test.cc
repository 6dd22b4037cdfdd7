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
bool is_in_layer(const std::string& name, int layer) {
  const std::string number = std::to_string(layer) + ".";
  return contains(name, "layers." + number) || contains(name, "h." + number);
}

std::vector<Choice> choices() {
  return {
      {"everything", [](const std::string&) { return true; }},
      {"the last layer", [](const std::string& name) { return is_in_layer(name, 1); }},
      {"the first layer", [](const std::string& name) { return is_in_layer(name, 0); }},
      {"vectors",
       [](const std::string& name) {
         return contains(name, "norm") || contains(name, "ln_") || contains(name, "bias");
       }},
      {"all but vectors",
       [](const std::string& name) {
         return !contains(name, "norm") && !contains(name, "ln_") && !contains(name, "bias");
       }},
      {"the first parameter",
       [](const std::string& name) { return contains(name, "embed_tokens") || contains(name, "wte"); }},
      {"all but embeddings and head",
       [](const std::string& name) {
         return !contains(name, "embed_tokens") && !contains(name, "wte") && !contains(name, "wpe") &&
                !contains(name, "lm_head");
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
    for (const std::size_t param : expected) CHECK(some.gradients[param] == all.gradients[param]);
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

// Layers below the lowest that is trained share memory.
TEST_CASE("frozen layers below the lowest that is trained keep nothing for a backward, and change no bit") {
  const DeviceMachine machine({}, best_cpu_isa(), 2);
  for (auto [name, config] : family_configs()) {
    CAPTURE(name);
    config.num_hidden_layers = 4;
    config.layer_windows.resize(config.layer_windows.empty() ? 0 : 4);
    config.layer_rope.resize(config.layer_rope.empty() ? 0 : 4);
    std::vector<std::size_t> num_bytes;
    for (const int lowest : {0, 1, 2, 3, 4}) {
      const Choice choice{"layers", [&](const std::string& param) {
                            const bool is_last =
                                contains(param, "lm_head") || contains(param, "model.norm") || contains(param, "ln_f");
                            for (int layer = lowest; layer < 4; ++layer)
                              if (is_in_layer(param, layer)) return true;
                            return is_last;
                          }};
      for (const bool checkpoints : {false, true}) {
        TransformerOptions options;
        options.checkpoint_activations = checkpoints;
        const RandomModel::Gradients all = RandomModel(machine.ctx, config, DType::kF32, options).gradients();
        options.frozen = frozen_of(config, choice);
        RandomModel model(machine.ctx, config, DType::kF32, options);
        const RandomModel::Gradients some = model.gradients();
        CHECK(some.result.loss_sum == all.result.loss_sum);
        for (std::size_t param = 0; param < all.gradients.size(); ++param)
          if (!options.frozen[param]) CHECK(some.gradients[param] == all.gradients[param]);
        if (!checkpoints) num_bytes.push_back(model.model().activation_bytes());
      }
    }
    // From the second frozen layer on each keeps less. One input each has 4, 4, 3, 2 and 1 layer.
    CHECK(num_bytes[1] > num_bytes[2]);
    CHECK(num_bytes[2] > num_bytes[3]);
    CHECK(num_bytes[3] > num_bytes[4]);
  }
}
