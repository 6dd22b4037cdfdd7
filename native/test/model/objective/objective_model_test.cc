// Preference objectives over random models of every family: gradients, bits, and references with the adapters off.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "test/error_code.h"
#include "test/model/family_configs.h"
#include "test/model/objective/objective_cases.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr PassShape kShape{4, 11};
constexpr LeafKey kKey{7, 3, 1};
const std::vector<double> kReference{-31, -24, -40, -22};
constexpr double kKl = 0.7;

RandomModel model_of(const Context& ctx, const ModelConfig& config, DType dtype,
                     const TransformerOptions& options = {}) {
  RandomModel model(ctx, config, dtype, options, kShape);
  for (std::size_t row = 0; row < model.targets.size(); ++row) {
    const std::size_t sequence = row / 11, position = row % 11;
    if (position < 2 || position > 10 - sequence) model.targets[row] = -100;  // prompts, and ends of different lengths
  }
  return model;
}

ModelConfig with_adapter(ModelConfig config) {
  config.adapter = AdapterConfig{3, 0.75, 0, AdapterInit::kKaimingUniform, adapter_targets(config), {}};
  return config;
}

ObjectivePass pass_of(RandomModel& model, const Context& ctx, const ObjectiveOptions& options) {
  return objective_pass(model.model(), ctx, model.specs().size(), model.leaf(kKey), options,
                        leaf_for(options, kReference, kKl));
}

bool same(const ObjectivePass& a, const ObjectivePass& b) {
  return a.result.loss_sum == b.result.loss_sum && a.objective.sums == b.objective.sums &&
         a.objective.factors == b.objective.factors && a.grads == b.grads;
}

using Doubles = std::vector<std::vector<double>>;

/// d log_prob / d parameters of one sequence: the other sequences' targets do not count in a plain pass.
Doubles log_prob_gradients(RandomModel& model, std::size_t sequence) {
  const std::vector<std::int32_t> targets = model.targets;
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (row / 11 != sequence) model.targets[row] = -100;
  }
  Doubles gradients(model.specs().size());
  const RandomModel::Gradients plain = model.gradients(kKey);
  for (std::size_t param = 0; param < plain.gradients.size(); ++param) {
    for (const float value : plain.gradients[param]) gradients[param].push_back(-static_cast<double>(value));
  }
  model.targets = targets;
  return gradients;
}

double apart(const std::vector<float>& values, const std::vector<double>& expected, double least) {
  double most = least, difference = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    most = std::max(most, std::abs(expected[i]));
    difference = std::max(difference, std::abs(static_cast<double>(values[i]) - expected[i]));
  }
  return difference / most;
}

}  // namespace

TEST_CASE("objectives: in every family the gradients are those of the sequences' log-probabilities, by their factors") {
  for (const Device& device : devices_here()) {
    const DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, family] : family_configs()) {
      CAPTURE(name);
      ModelConfig config = family;
      config.router_aux_loss_coef = 0;
      // A sequence of a leaf has other masks than it has alone.
      config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;
      RandomModel model = model_of(machine.ctx, config, DType::kF32);
      std::vector<Doubles> gradients;
      for (std::size_t sequence = 0; sequence < 4; ++sequence) gradients.push_back(log_prob_gradients(model, sequence));
      for (const ObjectiveCase& objective : objective_cases()) {
        CAPTURE(objective.name);
        const ObjectivePass pass = pass_of(model, machine.ctx, objective.options);
        for (std::size_t param = 0; param < pass.grads.size(); ++param) {
          CAPTURE(model.specs()[param].name);
          std::vector<double> expected(pass.grads[param].size());
          for (std::size_t sequence = 0; sequence < 4; ++sequence) {
            for (std::size_t i = 0; i < expected.size(); ++i)
              expected[i] += pass.objective.factors[sequence] * gradients[sequence][param][i];
          }
          CHECK(apart(pass.grads[param], expected, 1e-4) < 2e-5);
        }
      }
    }
  }
}

// Half of the directional derivative's error is the loss' curvature, half fp32.
TEST_CASE("objectives: the gradients are the slope of the loss, through dropout and adapters") {
  const DeviceMachine machine({}, best_cpu_isa(), 2);
  for (const auto& [name, family] : family_configs()) {
    if (family.num_experts > 0) continue;
    for (const ModelConfig& config : {family, with_adapter(family)}) {
      for (const ObjectiveCase& objective : objective_cases()) {
        CAPTURE(name);
        CAPTURE(objective.name);
        RandomModel model = model_of(machine.ctx, config, DType::kF32);
        const ObjectivePass at = pass_of(model, machine.ctx, objective.options);
        double slope = 0;
        for (const std::vector<float>& gradient : at.grads)
          for (const float value : gradient) slope += static_cast<double>(value) * static_cast<double>(value);
        const double step = 2e-3 / std::max(slope, std::sqrt(slope));
        const auto loss_at = [&](double factor) {
          model.move(at.grads, factor);
          return pass_of(model, machine.ctx, objective.options).objective.sums.loss;
        };
        const double above = loss_at(step), below = loss_at(-2 * step);
        CHECK((above - below) / (2 * step) == doctest::Approx(slope).epsilon(0.02));
      }
    }
  }
}

TEST_CASE("objectives: equal bits with 1, 2 and 3 threads, and with recomputed activations") {
  const DeviceMachine one({}, best_cpu_isa(), 1), two({}, best_cpu_isa(), 2), three({}, best_cpu_isa(), 3);
  TransformerOptions recompute;
  recompute.checkpoint_activations = true;
  for (const auto& [name, family] : family_configs()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      const ModelConfig config = with_adapter(family);
      RandomModel first = model_of(one.ctx, config, dtype), second = model_of(two.ctx, config, dtype),
                  third = model_of(three.ctx, config, dtype, recompute);
      for (const ObjectiveCase& objective : objective_cases()) {
        CAPTURE(name);
        CAPTURE(objective.name);
        const ObjectivePass expected = pass_of(first, one.ctx, objective.options);
        CHECK(same(pass_of(second, two.ctx, objective.options), expected));
        CHECK(same(pass_of(third, three.ctx, objective.options), expected));
      }
    }
  }
}

TEST_CASE("objectives: factors of -1 give the bits of a plain pass") {
  for (const Device& device : devices_here()) {
    const DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, config] : family_configs()) {
      CAPTURE(name);
      RandomModel model = model_of(machine.ctx, config, DType::kF32);
      const RandomModel::Gradients plain = model.gradients(kKey);
      std::vector<std::vector<float>> grads(model.specs().size());
      const GradCallback on_grad = [&](std::size_t param, std::span<const float> grad) {
        grads[param] = fetched(machine.ctx, grad);
      };
      CallbackSink sink(on_grad);
      double sum = 0;
      const auto objective = [&](std::span<const SequenceScore> scores) {
        for (const SequenceScore& score : scores) sum += score.log_prob;
        return std::vector<double>(scores.size(), -1.0);
      };
      const LeafResult result = model.model().forward_backward(model.leaf(kKey), objective, {1.0F, 2.0F}, sink);
      CHECK(result.loss_sum == plain.result.loss_sum);
      CHECK(sum == doctest::Approx(-plain.result.loss_sum));
      CHECK(grads == plain.gradients);
    }
  }
}

// A product's rows do not depend on their position, nor do experts' rows; attention is within a sequence.
TEST_CASE("objectives: the order of a leaf's pairs changes no bit of a pair's scores and factors") {
  const DeviceMachine machine({}, best_cpu_isa(), 2);
  for (const auto& [name, family] : family_configs()) {
    CAPTURE(name);
    ModelConfig config = family;
    config.embedding_dropout = config.attention_dropout = config.residual_dropout = 0;  // masks belong to positions
    RandomModel model = model_of(machine.ctx, config, DType::kBF16),
                turned = model_of(machine.ctx, config, DType::kBF16);
    std::ranges::rotate(turned.tokens, turned.tokens.begin() + 22);
    std::ranges::rotate(turned.targets, turned.targets.begin() + 22);
    std::vector<double> reference = kReference;
    std::ranges::rotate(reference, reference.begin() + 2);
    for (const ObjectiveCase& objective : objective_cases()) {
      if (!objective.options.has_pairs()) continue;
      const ObjectivePass at = pass_of(model, machine.ctx, objective.options);
      const ObjectivePass back = objective_pass(turned.model(), machine.ctx, turned.specs().size(), turned.leaf(kKey),
                                                objective.options, leaf_for(objective.options, reference, kKl));
      for (std::size_t sequence = 0; sequence < 4; ++sequence) {
        CHECK(back.scores[(sequence + 2) % 4].log_prob == at.scores[sequence].log_prob);
        CHECK(back.objective.factors[(sequence + 2) % 4] == at.objective.factors[sequence]);
      }
    }
  }
}

TEST_CASE("scores with the adapters off have the bits of the base alone, and leave the adapters as they were") {
  for (const Device& device : devices_here()) {
    const DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, base] : family_configs()) {
      for (const DType dtype : {DType::kF32, DType::kBF16}) {
        CAPTURE(name);
        RandomModel adapted = model_of(machine.ctx, with_adapter(base), dtype);
        Transformer alone(machine.ctx, base, dtype, kShape.batch, kShape.length);
        alone.bind_params(adapted.params().first(param_specs(base).size()));
        alone.params_changed();
        const LeafInput leaf = adapted.leaf(kKey);
        const RandomModel::Gradients before = adapted.gradients(kKey);
        const auto on = log_probs_of(adapted.model().scores(leaf));
        const auto off = log_probs_of(adapted.model().scores(leaf, Transformer::Adapters::kOff));
        CHECK(off == log_probs_of(alone.scores(leaf)));
        CHECK(off != on);
        CHECK(log_probs_of(adapted.model().scores(leaf)) == on);
        CHECK(adapted.gradients(kKey) == before);
      }
    }
  }
}

TEST_CASE("objectives: at the first step, with B of zeros, policy and reference are equal bits, so rewards are 0") {
  for (const Device& device : devices_here()) {
    const DeviceMachine machine(device, best_cpu_isa(), 2);
    for (const auto& [name, base] : family_configs()) {
      CAPTURE(name);
      RandomModel model = model_of(machine.ctx, with_adapter(base), DType::kF32);
      std::vector<std::vector<float>> values = model.values();
      for (std::size_t param = 0; param < values.size(); ++param) {
        if (!model.specs()[param].base && model.specs()[param].init == ParamInit::kZeros)
          std::ranges::fill(values[param], 0.0F);
      }
      model.set(values);
      const LeafInput leaf = model.leaf(kKey);
      CHECK(log_probs_of(model.model().scores(leaf)) ==
            log_probs_of(model.model().scores(leaf, Transformer::Adapters::kOff)));
    }
  }
}

TEST_CASE("scores are sums over each sequence's own targets; a base that is not held beside its adapter is refused") {
  const DeviceMachine machine({}, best_cpu_isa(), 2);
  const ModelConfig config = config_of("gpt2");
  RandomModel model = model_of(machine.ctx, config, DType::kF32);
  const std::vector<SequenceScore> scores = model.model().scores(model.leaf(kKey));
  double sum = 0;
  for (std::size_t sequence = 0; sequence < 4; ++sequence) {
    CHECK(scores[sequence].num_targets == static_cast<std::int64_t>(9 - sequence));
    sum += scores[sequence].log_prob;
  }
  CHECK(sum == doctest::Approx(-model.model().forward(model.leaf(kKey)).loss_sum).epsilon(1e-12));
  const auto refused = [&](RandomModel& one) {
    return code_of([&] { one.model().scores(one.leaf(kKey), Transformer::Adapters::kOff); });
  };
  CHECK(refused(model) == "invalid_argument");
  ModelConfig saved = with_adapter(config);
  saved.adapter->modules_to_save = {"ln_f"};
  RandomModel with_saved = model_of(machine.ctx, saved, DType::kF32);
  CHECK(refused(with_saved) == "invalid_argument");
}
