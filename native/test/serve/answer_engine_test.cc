#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "model/config/quantized_values.h"
#include "test/all_dtypes.h"
#include "test/error_code.h"
#include "test/serve/engine_driver.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE(
    "answer engine: an answer has the same bits alone, among other sequences, after a prefix hit, after preemption, on "
    "any threads") {
  for (const std::string family : {"llama", "mixtral", "gpt2"}) {
    CAPTURE(family);
    const ModelConfig config = config_of(family);
    std::mt19937 random(4);
    const Tokens prompt = random_tokens(random, 37, config.vocab_size);
    EngineDriver alone(config, {1, 64}, DType::kBF16, 1);
    const Answer expected = alone.finish(alone.add(prompt, 12, 5));
    CHECK(expected.tokens.size() == 12);
    CHECK(expected.cached_tokens == 0);

    EngineDriver crowd(config, {32, 32 * 64});
    std::uint64_t id = 0;
    for (int i = 0; i < 32; ++i) {
      if (i == 20)
        id = crowd.add(prompt, 12, 5);
      else
        crowd.add(random_tokens(random, 1 + random() % 40, config.vocab_size),
                  1 + static_cast<std::int64_t>(random() % 20), random());
      if (i % 5 == 0) crowd.step();
    }
    CHECK(crowd.finish(id).same_bits(expected));

    const Answer again = crowd.finish(crowd.add(prompt, 12, 5));
    CHECK(again.same_bits(expected));
    CHECK(again.cached_tokens == 32);

    // The KV cache has room for two of eight sequences: some are preempted repeatedly.
    EngineDriver crowded(config, {8, 128});
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 8; ++i)
      ids.push_back(i == 6 ? crowded.add(prompt, 12, 5)
                           : crowded.add(random_tokens(random, 30, config.vocab_size), 20, random()));
    for (const std::uint64_t other : ids) crowded.finish(other);
    CHECK(crowded.answers[ids[6]].same_bits(expected));
  }
}

TEST_CASE("answer engine: an answer has the same bits with any number of threads, on every path") {
  const ModelConfig config = config_of("llama");
  std::mt19937 random(4);
  const Tokens prompt = random_tokens(random, 37, config.vocab_size);
  for (const CpuIsa isa : available_isas()) {
    const auto answer = [&](int threads) {
      EngineDriver driver(config, {1, 64}, DType::kBF16, threads, Device{}, isa);
      return driver.finish(driver.add(prompt, 12, 5));
    };
    const Answer expected = answer(1);
    CHECK(answer(2).same_bits(expected));
    CHECK(answer(5).same_bits(expected));
  }
}

TEST_CASE("answer engine: log-probabilities have the bits of the trainer's losses of the same sequence") {
  for (const auto& [family, config] : family_configs()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(family + " " + name_of(dtype));
      std::mt19937 random(4);
      const Tokens prompt = random_tokens(random, 9, config.vocab_size);
      for (const CpuIsa isa : available_isas()) {
        CAPTURE(name_of(isa));
        EngineDriver driver(config, {2, 128}, dtype, 2, Device{}, isa);
        check_losses(config, dtype, weights_of(config), prompt, driver.finish(driver.add(prompt, 22, 5)), isa);
      }
    }
  }
}

TEST_CASE("answer engine: a quantized model has the bits of the trainer's losses with its dequantized weights") {
  for (const auto& [family, config] : family_configs()) {
    for (const QuantFormat format : {QuantFormat::kNf4, QuantFormat::kInt8}) {
      const DType dtype = format == QuantFormat::kNf4 ? DType::kBF16 : DType::kF32;
      CAPTURE(family + " " + name_of(dtype));
      ModelConfig quantized = config;
      quantized.quantization = format;
      auto weights = weights_of(config);
      const std::vector<ParamSpec> specs = param_specs(quantized);
      Machine machine(best_cpu_isa(), 2);
      for (std::size_t i = 0; i < specs.size(); ++i) {
        if (!specs[i].quantization) continue;
        quantized_values(machine.ctx, format, dtype, {specs[i].shape[0], specs[i].shape[1]}, weights[i]);
      }
      std::mt19937 random(4);
      const Tokens prompt = random_tokens(random, 9, config.vocab_size);
      for (const CpuIsa isa : available_isas()) {
        CAPTURE(name_of(isa));
        EngineDriver driver(quantized, {2, 128}, dtype, 2, Device{}, isa);
        check_losses(config, dtype, weights, prompt, driver.finish(driver.add(prompt, 22, 5)), isa);
      }
    }
  }
}

TEST_CASE("answer engine: each parameter is set once, in any order and in pieces; memory is known before") {
  const std::pair<std::string, std::optional<QuantFormat>> models[] = {
      {"llama", {}}, {"gpt2", {}}, {"mixtral", {}}, {"llama", QuantFormat::kInt8}};
  for (const auto& [family, format] : models) {
    CAPTURE(family + (format ? " from codes" : ""));
    ModelConfig config = config_of(family);
    config.quantization = format;
    const auto weights = weights_of(config);
    EngineDriver straight(config, {4, 256});
    AnswerEngine engine(config, DType::kBF16, Device{}, 1, best_cpu_isa(), {4, 256});
    const std::size_t num_bytes = engine.num_bytes();
    CHECK(code_of([&] { engine.step(); }) == "invalid_argument");
    for (std::size_t param = weights.size(); param-- > 0;) {
      const std::span<const float> values(weights[param]), first = values.first(values.size() / 3);
      const std::int64_t begin = std::ssize(first);
      const auto set = [&](std::int64_t at, std::span<const float> part) {
        engine.set_param(param, at, DType::kF32, std::as_bytes(part));
      };
      CHECK(code_of([&] { set(begin, values.subspan(first.size())); }) == "invalid_argument");
      set(0, first);
      CHECK(code_of([&] { set(0, first); }) == "invalid_argument");
      CHECK(code_of([&] { set(begin, values); }) == "invalid_argument");
      set(begin, values.subspan(first.size()));
    }
    CHECK(engine.num_bytes() == num_bytes);
    CHECK(straight.engine.num_bytes() == num_bytes);
    CHECK(code_of([&] { engine.set_param(0, 0, DType::kF32, std::as_bytes(std::span(weights[0]))); }) ==
          "invalid_argument");
    const std::uint64_t id = straight.add({1, 2, 3}, 5, 9);
    SequenceRequest request = straight.request({1, 2, 3}, 5, 9);
    engine.add(request);
    Tokens tokens;
    while (tokens.size() < 5) {
      for (const DrawnToken& token : engine.step()) tokens.push_back(token.drawn.token);
    }
    CHECK(tokens == straight.finish(id).tokens);
  }
}

TEST_CASE("answer engine: end tokens and lengths end a sequence") {
  const ModelConfig config = config_of("llama");
  EngineDriver driver(config, {4, 256});
  const Answer plain = driver.finish(driver.add({1, 2, 3}, 10, 1));
  CHECK(plain.finish == Finish::kLength);
  SequenceRequest request = driver.request({1, 2, 3}, 10, 1);
  request.end_tokens = {plain.tokens[4]};
  const std::uint64_t id = request.id;
  driver.engine.add(request);
  const Answer ended = driver.finish(id);
  const auto first = std::ranges::find(plain.tokens, plain.tokens[4]) - plain.tokens.begin();
  CHECK(std::ssize(ended.tokens) == first + 1);
  CHECK(ended.finish == Finish::kEndToken);
  const std::int64_t longest = driver.engine.max_length();
  CHECK(std::ssize(driver.finish(driver.add({1, 2, 3}, 1000, 1)).tokens) == longest - 3);
  EngineDriver shorter(config, {4, 256, 20});
  CHECK(shorter.engine.max_length() == 20);
  CHECK(std::ssize(shorter.finish(shorter.add({1, 2, 3}, 1000, 1)).tokens) == 17);
  CHECK(code_of([&] { shorter.add(Tokens(20, 1), 1, 1); }) == "prompt_too_long");
}

TEST_CASE("answer engine: tokens that the tokenizer does not know are neither drawn nor reported") {
  const ModelConfig config = config_of("llama");
  EngineDriver driver(config, {4, 256});
  SequenceRequest request = driver.request({1, 2, 3}, 20, 1);
  request.draw.num_tokens = 3;
  request.top_log_probs = 5;
  const std::uint64_t id = request.id;
  driver.engine.add(request);
  const Answer& answer = driver.finish(id);
  for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
    CHECK(answer.tokens[i] < 3);
    Tokens top = answer.top[i];
    std::ranges::sort(top);
    CHECK(top == Tokens{0, 1, 2});
  }
}

TEST_CASE("answer engine: a cancelled sequence releases its pages; refused requests are not added") {
  const ModelConfig config = config_of("llama");
  EngineDriver driver(config, {4, 64});
  const std::uint64_t first = driver.add(Tokens(30, 1), 30, 1);
  driver.step();
  driver.engine.cancel(first);
  const std::uint64_t waiting = driver.add({3}, 5, 1);
  driver.engine.cancel(waiting);
  const std::uint64_t whole = driver.add(Tokens(60, 2), 3, 1);
  driver.finish(whole);
  CHECK(driver.answers[first].tokens.size() == 1);
  CHECK(driver.answers[waiting].tokens.empty());
  const auto code_with = [&](const auto& change) {
    SequenceRequest request = driver.request({1, 2}, 5, 1);
    change(request);
    return code_of([&] { driver.engine.add(request); });
  };
  CHECK(code_with([](SequenceRequest& r) { r.prompt.clear(); }) == "invalid_argument");
  CHECK(code_with([](SequenceRequest& r) { r.max_tokens = 0; }) == "invalid_argument");
  CHECK(code_with([](SequenceRequest& r) { r.draw.top_p = 2; }) == "invalid_argument");
  CHECK(code_with([&](SequenceRequest& r) { r.prompt[0] = static_cast<std::int32_t>(config.vocab_size); }) ==
        "token_out_of_vocab");
  CHECK(code_with([](SequenceRequest& r) { r.prompt.assign(64, 1); }) == "prompt_too_long");
  CHECK(driver.engine.step().empty());
  CHECK(code_of([&] { AnswerEngine(config, DType::kBF16, Device{}, 1, best_cpu_isa(), {0, 64}); }) ==
        "invalid_argument");
  CHECK(code_of([&] { AnswerEngine(config, DType::kBF16, Device{}, 1, best_cpu_isa(), {129, 64}); }) ==
        "invalid_argument");
  AnswerEngine empty(config, DType::kBF16, Device{}, 1, best_cpu_isa(), {1, 64});
  CHECK(code_of([&] { empty.step(); }) == "invalid_argument");
}

DEVICE_TEST_CASE("answer engine: on a CUDA device an answer has the same bits alone and among other sequences") {
  const ModelConfig config = config_of("llama");
  for (const Device device : cuda_devices_here()) {
    std::mt19937 random(4);
    const Tokens prompt = random_tokens(random, 33, config.vocab_size);
    EngineDriver driver(config, {3, 256}, DType::kBF16, 1, device);
    const Answer expected = driver.finish(driver.add(prompt, 3, 5));
    driver.add(random_tokens(random, 20, config.vocab_size), 3, 1);
    const std::uint64_t id = driver.add(prompt, 3, 5);
    CHECK(driver.finish(id).same_bits(expected));
    CHECK(driver.answers[id].cached_tokens == 32);
  }
}

TEST_CASE(
    "answer engine: with longrope each token is drawn from the frequencies of the tokens before it, alone and in a "
    "crowd") {
  ModelConfig config = config_of("phi3_longrope");
  config.rope_scaling.original_max_position_embeddings = 40;
  const auto weights = weights_of(config);
  std::mt19937 random(4);
  const Tokens prompt = random_tokens(random, 37, config.vocab_size);
  EngineDriver alone(config, {1, 64});
  const Answer answer = alone.finish(alone.add(prompt, 12, 5));
  Tokens known = prompt;
  for (std::size_t i = 0; i < answer.tokens.size(); ++i) {
    Answer next;
    next.tokens = {answer.tokens[i]};
    next.log_probs = {answer.log_probs[i]};
    check_losses(config, DType::kBF16, weights, known, next);
    known.push_back(answer.tokens[i]);
  }
  // Room for two of four sequences, all of which grow beyond the original length.
  EngineDriver crowd(config, {4, 128});
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(crowd.add(random_tokens(random, 36, config.vocab_size), 20, random()));
  ids.push_back(crowd.add(prompt, 12, 5));
  for (const std::uint64_t id : ids) crowd.finish(id);
  CHECK(crowd.answers[ids.back()].same_bits(answer));
  // Short and long sequences with a common prefix share no keys.
  EngineDriver shared(config, {2, 256}), fresh(config, {2, 256});
  CHECK(shared.finish(shared.add(prompt, 3, 5)).cached_tokens == 0);
  const Answer expected = fresh.finish(fresh.add(known, 3, 5));
  const Answer without_prefix = shared.finish(shared.add(known, 3, 5));
  CHECK(without_prefix.cached_tokens == 0);
  CHECK(without_prefix.same_bits(expected));
  CHECK(shared.finish(shared.add(known, 3, 5)).cached_tokens == 32);
  CHECK(shared.finish(shared.add(prompt, 12, 5)).same_bits(answer));
}
