#include "model/transformer/transformer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/device/buffer.h"
#include "core/device/transfer.h"
#include "core/error.h"
#include "test/devices_here.h"
#include "test/error_code.h"

using namespace zerofleet;
using zerofleet::test::code_of;
using zerofleet::test::DeviceMachine;
using zerofleet::test::devices_here;
using zerofleet::test::fetched;

namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.hidden_size = 24;
  config.intermediate_size = 40;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 6;
  config.vocab_size = 50;
  config.max_position_embeddings = 64;
  return config;
}

/// A model with random bf16 parameters of its own and one batch for it, on a device.
struct Fixture {
  explicit Fixture(const ModelConfig& model_config, Device device = {}, std::int64_t batch = 2, std::int64_t length = 9)
      : machine(device, best_cpu_isa(), 2),
        config(model_config),
        model(machine.ctx, config, DType::kBF16, batch, length) {
    std::mt19937 random(19);
    std::normal_distribution<float> normal(0.0F, 0.2F);
    for (const ParamSpec& spec : param_specs(config)) {
      buffers.emplace_back(device, static_cast<std::size_t>(spec.numel()) * sizeof(bf16));
      std::vector<bf16>& host = values.emplace_back(static_cast<std::size_t>(spec.numel()));
      for (bf16& value : host) value = to_bf16(normal(random));
      pointers.push_back(buffers.back().data());
    }
    put_values();
    model.bind_params(pointers);
    model.params_changed();
    for (std::int64_t i = 0; i < batch * length; ++i) {
      tokens.push_back(static_cast<std::int32_t>(random() % 50U));
      targets.push_back(static_cast<std::int32_t>(random() % 50U));
    }
  }

  /// Copies `values` to the parameters' contents.
  void put_values() {
    for (std::size_t i = 0; i < values.size(); ++i) {
      copy_bytes(machine.ctx, {buffers[i].data(), buffers[i].num_bytes()}, machine.ctx.device,
                 std::as_bytes(std::span(values[i])), Device{});
    }
  }
  std::vector<float> on_host(std::span<const float> grad) const { return fetched(machine.ctx, grad); }

  DeviceMachine machine;
  ModelConfig config;
  Transformer model;
  std::vector<std::vector<bf16>> values;
  std::vector<Buffer> buffers;
  std::vector<const std::byte*> pointers;
  std::vector<std::int32_t> tokens, targets;
};

const GradCallback kDropGrads = [](std::size_t, std::span<const float>) {};

}  // namespace

TEST_CASE("param_specs: Hugging Face names and shapes in forward order; tied models have no lm_head") {
  ModelConfig config = small_config();
  const auto specs = param_specs(config);
  REQUIRE(specs.size() == 1 + 2 * 9 + 2);
  CHECK(specs[0].name == "model.embed_tokens.weight");
  CHECK(specs[3].name == "model.layers.0.self_attn.k_proj.weight");
  CHECK(specs[3].shape == std::vector<std::int64_t>{12, 24});
  CHECK(specs[10].name == "model.layers.1.input_layernorm.weight");
  CHECK(specs[10].group == ParamGroup::kNoDecay);
  CHECK(specs[10].init == ParamInit::kOnes);
  CHECK(specs[18].name == "model.layers.1.mlp.down_proj.weight");
  CHECK(specs[18].shape == std::vector<std::int64_t>{24, 40});
  CHECK(specs.back().name == "lm_head.weight");
  config.tie_word_embeddings = true;
  CHECK(param_specs(config).back().name == "model.norm.weight");
}

TEST_CASE("validate names the invalid field of a configuration") {
  const std::pair<std::string, std::function<void(ModelConfig&)>> faults[] = {
      {"hidden_size", [](ModelConfig& c) { c.hidden_size = 0; }},
      {"vocab_size", [](ModelConfig& c) { c.vocab_size = -5; }},
      {"head_dim", [](ModelConfig& c) { c.head_dim = 7; }},
      {"intermediate_size", [](ModelConfig& c) { c.intermediate_size = 41; }},
      {"num_key_value_heads", [](ModelConfig& c) { c.num_key_value_heads = 3; }},
      {"norm_eps", [](ModelConfig& c) { c.norm_eps = 0; }},
      {"rope_theta", [](ModelConfig& c) { c.rope_theta = 1; }},
      {"initializer_range", [](ModelConfig& c) { c.initializer_range = std::nan(""); }},
      {"residual_initializer_range", [](ModelConfig& c) { c.residual_initializer_range = 0; }},
      {"attention_dropout", [](ModelConfig& c) { c.attention_dropout = 1; }},
      {"layer_windows", [](ModelConfig& c) { c.layer_windows = {0}; }},
      {"layer_windows", [](ModelConfig& c) { c.layer_windows = {0, -1}; }},
      {"rope_scaling.factor", [](ModelConfig& c) { c.rope_scaling = {RopeScalingType::kLinear, 0.5}; }},
      {"original_max_position_embeddings", [](ModelConfig& c) { c.rope_scaling = {RopeScalingType::kYarn, 2}; }},
      {"short_factor",
       [](ModelConfig& c) {
         c.rope_scaling = {RopeScalingType::kLongrope, 2};
         c.rope_scaling.original_max_position_embeddings = 8;
       }},
      {"rotary_dim", [](ModelConfig& c) { c.rotary_dim = 3; }},
      {"rotary_dim", [](ModelConfig& c) { c.rotary_dim = c.head_dim + 2; }},
      {"naming", [](ModelConfig& c) { c.mlp = MlpType::kGelu; }},
      {"naming", [](ModelConfig& c) { c.naming = "gpt2"; }},
      {"num_experts", [](ModelConfig& c) { c.num_experts = 4; }},
  };
  CHECK(code_of([] { validate(small_config()); }) == "none");
  for (const auto& [field, spoil] : faults) {
    ModelConfig config = small_config();
    spoil(config);
    try {
      validate(config);
      FAIL("accepted a bad " << field);
    } catch (const Error& error) {
      CHECK(error.code() == "invalid_model_config");
      CHECK(std::string(error.what()).find(field) != std::string::npos);
    }
  }
}

TEST_CASE("matrices whose output is added to the residual stream begin with a spread of their own") {
  ModelConfig config = small_config();
  config.residual_initializer_range = 0.005;
  for (const ParamSpec& spec : param_specs(config)) {
    if (spec.init == ParamInit::kOnes) continue;
    CAPTURE(spec.name);
    const bool is_added = spec.name.ends_with("o_proj.weight") || spec.name.ends_with("down_proj.weight");
    CHECK(spec.init_scale == (is_added ? 0.005F : 0.02F));
  }
}

DEVICE_TEST_CASE("activation checkpointing, and weights that stay in place: the same bits from less memory") {
  for (const Device device : devices_here()) {
    ModelConfig config = small_config();
    config.num_hidden_layers = 4;
    Fixture fixture(config, device);
    const auto gradients_of = [&](Transformer& model) {
      std::vector<std::vector<float>> grads;
      const LeafResult result = model.forward_backward(
          {fixture.tokens, fixture.targets}, 0.5F,
          [&](std::size_t, std::span<const float> grad) { grads.push_back(fixture.on_host(grad)); });
      grads.push_back({static_cast<float>(result.loss_sum)});
      return grads;
    };
    const auto expected = gradients_of(fixture.model);
    for (const TransformerOptions& options : {TransformerOptions{true, WeightUse::kPackedCopies},
                                              {false, WeightUse::kInPlace},
                                              {true, WeightUse::kInPlace}}) {
      Transformer thrifty(fixture.machine.ctx, config, DType::kBF16, 2, 9, options);
      thrifty.bind_params(fixture.pointers);
      thrifty.params_changed();
      CHECK(gradients_of(thrifty) == expected);
      CHECK(gradients_of(thrifty) == expected);
      CHECK((thrifty.activation_bytes() < fixture.model.activation_bytes()) == options.checkpoint_activations);
      // On a CUDA device there are no packed copies.
      CHECK((thrifty.packed_bytes() < fixture.model.packed_bytes()) ==
            (options.weights == WeightUse::kInPlace && device.kind == DeviceKind::kCpu));
    }
  }
}

TEST_CASE("every parameter's gradient is emitted once, in reverse canonical order but for a tied embedding") {
  for (const bool tied : {false, true}) {
    ModelConfig config = small_config();
    config.tie_word_embeddings = tied;
    Fixture fixture(config);
    const auto specs = param_specs(config);
    std::vector<std::size_t> order;
    fixture.model.forward_backward({fixture.tokens, fixture.targets}, 1.0F,
                                   [&](std::size_t param, std::span<const float> grad) {
                                     CHECK(static_cast<std::int64_t>(grad.size()) == specs[param].numel());
                                     order.push_back(param);
                                   });
    REQUIRE(order.size() == specs.size());
    for (std::size_t i = 0; i < order.size(); ++i) CHECK(order[i] == specs.size() - 1 - i);
  }
}

DEVICE_TEST_CASE("forward alone gives the loss of forward_backward") {
  for (const Device device : devices_here()) {
    Fixture fixture(small_config(), device);
    const LeafResult both = fixture.model.forward_backward({fixture.tokens, fixture.targets}, 1.0F, kDropGrads);
    const LeafResult alone = fixture.model.forward({fixture.tokens, fixture.targets});
    CHECK(both.loss_sum == alone.loss_sum);
    CHECK(both.num_targets == 18);
    CHECK(fixture.model.backward_seconds() == 0);
  }
}

DEVICE_TEST_CASE("targets of -100 do not count: a batch without targets has no loss and zero gradients") {
  for (const Device device : devices_here()) {
    Fixture fixture(small_config(), device);
    std::ranges::fill(fixture.targets, -100);
    const LeafResult result = fixture.model.forward_backward(
        {fixture.tokens, fixture.targets}, 1.0F, [&](std::size_t, std::span<const float> grad) {
          CHECK(std::ranges::all_of(fixture.on_host(grad), [](float value) { return value == 0.0F; }));
        });
    CHECK(result.loss_sum == 0.0);
    CHECK(result.num_targets == 0);
  }
}

DEVICE_TEST_CASE("changed parameters take effect with params_changed()") {
  for (const Device device : devices_here()) {
    Fixture fixture(small_config(), device);
    const double before = fixture.model.forward_backward({fixture.tokens, fixture.targets}, 1.0F, kDropGrads).loss_sum;
    for (std::vector<bf16>& values : fixture.values) {
      for (bf16& value : values) value = to_bf16(to_float(value) * 1.5F);
    }
    fixture.put_values();
    fixture.model.params_changed();
    std::vector<float> first_grad;
    const auto keep = [&](std::size_t param, std::span<const float> grad) {
      if (param == 0) first_grad = fixture.on_host(grad);
    };
    const double after = fixture.model.forward_backward({fixture.tokens, fixture.targets}, 1.0F, keep).loss_sum;
    CHECK(after != before);
    const std::vector<float> in_place = first_grad;
    Transformer fresh(fixture.machine.ctx, fixture.config, DType::kBF16, 2, 9);
    fresh.bind_params(fixture.pointers);
    fresh.params_changed();
    CHECK(fresh.forward_backward({fixture.tokens, fixture.targets}, 1.0F, keep).loss_sum == after);
    CHECK(first_grad == in_place);
  }
}

TEST_CASE("a pass that cannot be is refused by code, and an exception of the callback passes through") {
  Fixture fixture(small_config());
  const std::vector<std::int32_t>& tokens = fixture.tokens;
  const std::vector<std::int32_t>& targets = fixture.targets;
  Transformer& model = fixture.model;
  std::vector<std::int32_t> bad_tokens = tokens, bad_targets = targets;
  bad_tokens[3] = 50;
  bad_targets[3] = -1;
  const std::span<const std::int32_t> some = std::span<const std::int32_t>(tokens).first(5);
  CHECK(code_of([&] { model.forward({bad_tokens, targets}); }) == "token_out_of_vocab");
  CHECK(code_of([&] { model.forward({tokens, bad_targets}); }) == "token_out_of_vocab");
  CHECK(code_of([&] { model.forward({some, some}); }) == "invalid_argument");
  CHECK(code_of([&] { model.bind_params(std::span<const std::byte* const>(fixture.pointers).first(3)); }) ==
        "invalid_argument");
  CHECK(code_of([&] { Transformer(fixture.machine.ctx, fixture.config, DType::kBF16, 1, 65); }) == "invalid_argument");
  Transformer unbound(fixture.machine.ctx, fixture.config, DType::kBF16, 2, 9);
  CHECK(code_of([&] { unbound.forward({tokens, targets}); }) == "invalid_argument");
  CHECK(code_of([&] { unbound.params_changed(); }) == "invalid_argument");
  CHECK_THROWS_AS(
      model.forward_backward({tokens, targets}, 1.0F,
                             [](std::size_t, std::span<const float>) { throw std::length_error("no room"); }),
      std::length_error);
  CHECK(model.forward({tokens, targets}).num_targets == 18);
}
