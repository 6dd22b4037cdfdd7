// Preference objectives against torch's autograd over models of transformers and peft.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "test/devices_here.h"
#include "test/kernels/test_machine.h"
#include "test/model/golden_model.h"
#include "test/model/objective/objective_cases.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::vector<double> numbers(const GoldenFile& golden, const std::string& key) {
  std::vector<double> values;
  for (std::int64_t row = 0; row < golden.integer("batch"); ++row)
    values.push_back(golden.number(key + std::to_string(row)));
  return values;
}

ObjectiveOptions options_of(const GoldenFile& golden, const ObjectiveCase& objective) {
  ObjectiveOptions options{objective.options.kind, golden.number(objective.name + ".beta")};
  if (objective.name == "cdpo") options.label_smoothing = golden.number("cdpo.label_smoothing");
  if (objective.name == "simpo") options.gamma = golden.number("simpo.gamma");
  if (objective.name != "kto") return options;
  options.desirable_weight = golden.number("kto.desirable_weight");
  options.undesirable_weight = golden.number("kto.undesirable_weight");
  return options;
}

/// The inputs of a golden file, by our own model.
struct Inputs {
  std::vector<std::int32_t> tokens, targets, kl_tokens, kl_targets;
  std::vector<double> reference, kl_reference;

  Inputs(const GoldenFile& golden, Transformer& model)
      : tokens(golden.integers("tokens")),
        targets(golden.integers("targets")),
        kl_tokens(golden.integers("kl.tokens")),
        kl_targets(golden.integers("kl.targets")),
        reference(numbers(golden, "reference.")),
        kl_reference(numbers(golden, "kl.reference.")) {
    if (!golden.model_config().adapter) return;
    const auto without_adapters = [&](const LeafInput& leaf, std::vector<double>& expected) {
      const std::vector<double> values = log_probs_of(model.scores(leaf, Transformer::Adapters::kOff));
      for (std::size_t row = 0; row < values.size(); ++row)
        CHECK(values[row] == doctest::Approx(expected[row]).epsilon(1e-6));
      expected = values;
    };
    without_adapters(leaf(), reference);
    without_adapters(kl_leaf(), kl_reference);
  }
  LeafInput leaf() const { return {tokens, targets}; }
  LeafInput kl_leaf() const { return {kl_tokens, kl_targets}; }
};

void check_numbers(const GoldenFile& golden, const std::string& name, const ObjectiveSums& sums) {
  const auto expected = [&](const char* key) { return doctest::Approx(golden.number(name + key)).epsilon(1e-5); };
  CHECK(sums.loss == expected(".loss"));
  CHECK(sums.accuracy() == expected(".accuracy"));
  CHECK(sums.margin() == expected(".margin"));
  CHECK(sums.reward_chosen == expected(".reward_chosen"));
  CHECK(sums.reward_rejected == expected(".reward_rejected"));
  CHECK(sums.log_prob_chosen == expected(".log_prob_chosen"));
  CHECK(sums.log_prob_rejected == expected(".log_prob_rejected"));
  CHECK(sums.num_units == (name == "kto" ? 4 : 2));
}

void check_all(const GoldenFile& golden, const Context& ctx) {
  const std::vector<ParamSpec> specs = param_specs(golden.model_config());
  TransformerOptions options;
  for (const ParamSpec& spec : specs) options.frozen.push_back(spec.base);
  GoldenModel golden_model(golden, ctx, DType::kF32, options);
  Transformer& model = golden_model.model();
  const Inputs inputs(golden, model);
  const double kl = kl_estimate(model.scores(inputs.kl_leaf()), inputs.kl_reference);
  CHECK(kl == doctest::Approx(golden.number("kl")).epsilon(1e-5));
  for (const ObjectiveCase& objective : objective_cases()) {
    CAPTURE(objective.name);
    const ObjectiveOptions settings = options_of(golden, objective);
    const ObjectivePass pass =
        objective_pass(model, ctx, specs.size(), inputs.leaf(), settings, leaf_for(settings, inputs.reference, kl));
    check_numbers(golden, objective.name, pass.objective.sums);
    for (std::size_t param = 0; param < specs.size(); ++param) {
      if (specs[param].base) continue;
      CAPTURE(specs[param].name);
      CHECK(relative_error(pass.grads[param], golden.floats("grad." + objective.name + "." + specs[param].name)) <
            1e-5);
    }
  }
}

}  // namespace

DEVICE_TEST_CASE(
    "objectives: fp32 losses, metrics and every gradient match torch's within 1e-5, with references of both kinds") {
  for (const char* name : {"objectives_full", "objectives_lora"}) {
    const GoldenFile golden(name);
    for (const Device device : cuda_devices_here()) {
      CAPTURE(std::string(name) + " on " + to_string(device));
      DeviceMachine machine(device);
      check_all(golden, machine.ctx);
    }
    if (!cpu_is_tested()) continue;
    for (const CpuIsa isa : available_isas()) {
      CAPTURE(std::string(name) + " on " + name_of(isa));
      Machine machine(isa, 2);
      check_all(golden, machine.ctx);
    }
  }
}
