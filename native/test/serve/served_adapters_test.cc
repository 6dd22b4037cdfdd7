#include <doctest/doctest.h>

#include <random>
#include <string>
#include <vector>

#include "model/config/model_parts.h"
#include "test/error_code.h"
#include "test/serve/engine_driver.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

AdapterConfig adapter_of(std::int64_t rank, double scale, std::vector<std::string> targets) {
  AdapterConfig adapter;
  adapter.rank = rank;
  adapter.scale = scale;
  adapter.target_modules = std::move(targets);
  return adapter;
}

/// Adapters of every second matrix and of all, with several ranks and scales. Those of experts cannot be served.
std::vector<AdapterConfig> adapters_for(const ModelConfig& config) {
  std::vector<std::string> modules[2];
  for (const PartParams& part : model_parts(config).parts) {
    if ((part.kind != PartKind::kLinear && part.kind != PartKind::kRouter) || part.per_expert()) continue;
    const std::string module(part.module.substr(part.module.find("{}.") + 3));
    if (modules[1].size() % 2 == 0) modules[0].push_back(module);
    modules[1].push_back(module);
  }
  return {adapter_of(3, 2, modules[0]), adapter_of(8, 0.5, modules[1])};
}

std::vector<std::vector<float>> values_of(const ModelConfig& config, const AdapterConfig& adapter, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 0.3F);
  std::vector<std::vector<float>> values;
  for (const ParamSpec& spec : ServedAdapter::params(config, adapter)) {
    values.emplace_back(static_cast<std::size_t>(spec.numel()));
    for (float& value : values.back()) value = normal(random);
  }
  return values;
}

std::uint64_t add(EngineDriver& driver, std::int32_t adapter, const Tokens& prompt) {
  SequenceRequest request = driver.request(prompt, 8, 5);
  request.adapter = adapter;
  const std::uint64_t id = request.id;
  driver.engine.add(std::move(request));
  return id;
}

/// Answers of the model and of its adapters, each alone, then all at once: their bits are equal.
void check_side_by_side(const ModelConfig& config, DType dtype, Device device, std::size_t length, int rounds) {
  const std::vector<AdapterConfig> adapters = adapters_for(config);
  std::mt19937 random(4);
  const Tokens prompt = random_tokens(random, length, config.vocab_size);
  std::vector<Answer> alone;
  EngineDriver crowd(config, {16, 16 * 64}, dtype, 2, device);
  for (unsigned number = 0; number <= adapters.size(); ++number) {
    EngineDriver driver(config, {16, 16 * 64}, dtype, 1, device);
    std::int32_t adapter = 0;
    if (number > 0) {
      const auto values = values_of(config, adapters[number - 1], number);
      adapter = driver.engine.add_adapter(adapters[number - 1], values);
      CHECK(crowd.engine.add_adapter(adapters[number - 1], values) == static_cast<std::int32_t>(number));
    }
    alone.push_back(driver.finish(add(driver, adapter, prompt)));
  }
  CHECK(alone[0].log_probs != alone[1].log_probs);
  CHECK(alone[1].log_probs != alone[2].log_probs);
  std::vector<std::uint64_t> ids;
  for (int round = 0; round < rounds; ++round) {
    for (std::int32_t adapter : {2, 0, 1}) {
      add(crowd, adapter, random_tokens(random, 1 + random() % 20, config.vocab_size));
      ids.push_back(add(crowd, adapter, prompt));
    }
    crowd.step();
  }
  for (std::size_t i = 0; i < ids.size(); ++i)
    CHECK(crowd.finish(ids[i]).same_bits(alone[std::vector<std::size_t>{2, 0, 1}[i % 3]]));
  CHECK(crowd.finish(add(crowd, 1, prompt)).cached_tokens == 32);
}

}  // namespace

TEST_CASE("served adapters: an answer has the same bits alone and beside those of the model and of other adapters") {
  for (const auto& [family, config] : family_configs()) {
    for (const DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
      CAPTURE(family + " " + name_of(dtype));
      check_side_by_side(config, dtype, Device{}, 37, 3);
    }
  }
}

DEVICE_TEST_CASE("served adapters: on a CUDA device an answer has the same bits alone and beside others") {
  for (const Device device : cuda_devices_here()) {
    for (const std::string family : {"llama", "gpt2"})
      check_side_by_side(config_of(family), DType::kBF16, device, 33, 1);
  }
}

TEST_CASE("served adapters: log-probabilities have the bits of the losses of a training with the adapter") {
  for (const auto& [family, config] : family_configs()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CAPTURE(family + " " + name_of(dtype));
      const AdapterConfig adapter = adapters_for(config)[1];
      const auto values = values_of(config, adapter, 3);
      std::mt19937 random(4);
      const Tokens prompt = random_tokens(random, 9, config.vocab_size);
      EngineDriver driver(config, {2, 128}, dtype);
      const Answer answer = driver.finish(add(driver, driver.engine.add_adapter(adapter, values), prompt));
      ModelConfig trained = config;
      trained.adapter = adapter;
      auto weights = weights_of(config);
      weights.insert(weights.end(), values.begin(), values.end());
      check_losses(trained, dtype, weights, prompt, answer);
    }
  }
}

TEST_CASE("served adapters: what cannot be beside others is refused; a removed adapter ends its sequences") {
  const ModelConfig config = config_of("llama");
  EngineDriver driver(config, {4, 256});
  const AdapterConfig lora = adapter_of(3, 2, {"q_proj"});
  const auto values = values_of(config, lora, 1);
  const auto code_with = [&](const ModelConfig& base, AdapterConfig adapter) {
    return code_of([&] { ServedAdapter::params(base, adapter); });
  };
  AdapterConfig dora = lora, saving = lora;
  dora.type = AdapterType::kDora;
  saving.modules_to_save = {"lm_head"};
  CHECK(code_with(config, dora) == "adapter_not_servable");
  CHECK(code_with(config, saving) == "adapter_not_servable");
  CHECK(code_with(config_of("mixtral"), adapter_of(3, 2, {"w1"})) == "adapter_not_servable");
  CHECK(code_with(config, adapter_of(0, 2, {"q_proj"})) == "invalid_model_config");
  CHECK(code_of([&] { driver.engine.add_adapter(lora, std::span(values).first(1)); }) == "invalid_argument");
  CHECK(code_of([&] { add(driver, 1, {1, 2}); }) == "invalid_argument");

  const std::int32_t first = driver.engine.add_adapter(lora, values), second = driver.engine.add_adapter(lora, values);
  const std::uint64_t ended = add(driver, first, {1, 2}), other = add(driver, second, {1, 2});
  driver.step();
  const std::uint64_t arrived = add(driver, first, {3});
  CHECK(driver.engine.num_bytes(second) > values.front().size() * size_of(DType::kBF16));
  driver.engine.remove_adapter(first);
  CHECK(code_of([&] { add(driver, first, {1, 2}); }) == "invalid_argument");
  driver.finish(other);
  CHECK(driver.answers[ended].tokens.size() == 1);
  CHECK(driver.answers[arrived].tokens.empty());
  CHECK(driver.engine.step().empty());
}
