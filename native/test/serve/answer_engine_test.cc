#include "serve/answer_engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "core/dtype.h"
#include "test/error_code.h"
#include "test/kernels/every_path.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Tokens = std::vector<std::int32_t>;

struct Answer {
  Tokens tokens;
  std::vector<float> log_probs;
  std::vector<Tokens> top;
  std::int64_t cached_tokens = 0;
  Finish finish = Finish::kNone;
  bool same_text(const Answer& other) const {
    return tokens == other.tokens && log_probs == other.log_probs && top == other.top && finish == other.finish;
  }
};

ModelConfig config_of(const std::string& family) {
  for (const auto& [name, config] : family_configs()) {
    if (name == family) return config;
  }
  return family_configs().front().config;
}

std::vector<std::vector<float>> weights_of(const ModelConfig& config) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 0.3F);
  std::vector<std::vector<float>> weights;
  for (const ParamSpec& spec : param_specs(config)) {
    weights.emplace_back(static_cast<std::size_t>(spec.numel()));
    for (float& value : weights.back()) value = normal(random);
  }
  return weights;
}

/// An engine with weights, all answers of which are gathered.
struct Writer {
  Writer(const ModelConfig& config, const AnswerEngine::Limits& limits, DType dtype = DType::kBF16, int threads = 2, Device device = {})
      : engine(config, dtype, device, threads, best_cpu_isa(), limits) {
    const auto weights = weights_of(config);
    for (std::size_t param = 0; param < weights.size(); ++param) engine.set_param(param, weights[param]);
  }

  AnswerRequest request(Tokens prompt, std::int64_t max_tokens, std::uint64_t seed) {
    AnswerRequest request;
    request.id = next_id++;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.top_log_probs = 2;
    request.draw.seed = seed;
    return request;
  }
  std::uint64_t add(Tokens prompt, std::int64_t max_tokens, std::uint64_t seed) {
    AnswerRequest added = request(std::move(prompt), max_tokens, seed);
    const std::uint64_t id = added.id;
    engine.add(std::move(added));
    return id;
  }
  void step() {
    for (const DrawnToken& token : engine.step()) {
      Answer& answer = answers[token.id];
      CHECK(answer.finish == Finish::kNone);
      answer.tokens.push_back(token.drawn.token);
      answer.log_probs.push_back(token.drawn.log_prob);
      answer.top.emplace_back();
      for (const LikelyToken& likely : token.top) answer.top.back().push_back(likely.token);
      answer.cached_tokens = token.cached_tokens;
      answer.finish = token.finish;
    }
  }
  const Answer& finish(std::uint64_t id) {
    for (int left = 2000; left > 0 && answers[id].finish == Finish::kNone; --left) step();
    CHECK(answers[id].finish != Finish::kNone);
    return answers[id];
  }

  AnswerEngine engine;
  std::uint64_t next_id = 1;
  std::map<std::uint64_t, Answer> answers;
};

Tokens random_tokens(std::mt19937& random, std::size_t count, std::int64_t vocab) {
  Tokens tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab));
  return tokens;
}

}  // namespace

TEST_CASE("answer engine: an answer has the same bits alone, among strangers, after a prefix hit, when put back, on any threads") {
  for (const std::string family : {"llama", "mixtral", "gpt2"}) {
    CAPTURE(family);
    const ModelConfig config = config_of(family);
    std::mt19937 random(4);
    const Tokens prompt = random_tokens(random, 37, config.vocab_size);
    Writer alone(config, {1, 64}, DType::kBF16, 1);
    const Answer expected = alone.finish(alone.add(prompt, 12, 5));
    CHECK(expected.tokens.size() == 12);
    CHECK(expected.cached_tokens == 0);

    Writer crowd(config, {32, 32 * 64});
    std::uint64_t id = 0;
    for (int i = 0; i < 32; ++i) {
      if (i == 20) id = crowd.add(prompt, 12, 5);
      else crowd.add(random_tokens(random, 1 + random() % 40, config.vocab_size), 1 + static_cast<std::int64_t>(random() % 20), random());
      if (i % 5 == 0) crowd.step();
    }
    CHECK(crowd.finish(id).same_text(expected));

    const Answer again = crowd.finish(crowd.add(prompt, 12, 5));
    CHECK(again.same_text(expected));
    CHECK(again.cached_tokens == 32);

    // Room for two texts: of eight some are put back again and again.
    Writer crowded(config, {8, 128});
    std::vector<std::uint64_t> ids;
    for (int i = 0; i < 8; ++i) ids.push_back(i == 6 ? crowded.add(prompt, 12, 5) : crowded.add(random_tokens(random, 30, config.vocab_size), 20, random()));
    for (const std::uint64_t other : ids) crowded.finish(other);
    CHECK(crowded.answers[ids[6]].same_text(expected));
  }
}

TEST_CASE("answer engine: log-probabilities have the bits of the trainer's losses of the same text") {
  for (const auto& [family, config] : family_configs()) {
    for (const DType dtype : {DType::kF32, DType::kBF16}) {
      CAPTURE(family + " " + name_of(dtype));
      std::mt19937 random(4);
      Tokens text = random_tokens(random, 9, config.vocab_size);
      Writer writer(config, {2, 128}, dtype);
      const Answer answer = writer.finish(writer.add(text, 50, 5));
      text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
      Machine machine(best_cpu_isa(), 2);
      const auto length = static_cast<std::int64_t>(text.size()) - 1;
      Transformer trainer(machine.ctx, config, dtype, 1, length);
      const auto weights = weights_of(config);
      std::vector<SharedBytes> params;
      std::vector<const std::byte*> pointers;
      for (const auto& values : weights) {
        params.emplace_back(values.size() * size_of(dtype));
        if (dtype == DType::kF32) std::ranges::copy(values, reinterpret_cast<float*>(params.back().data()));
        else std::ranges::transform(values, reinterpret_cast<bf16*>(params.back().data()), to_bf16);
        pointers.push_back(params.back().data());
      }
      trainer.bind_params(pointers);
      trainer.params_changed();
      const Tokens tokens(text.begin(), text.end() - 1);
      for (std::size_t i = 0; i < answer.tokens.size(); i += 7) {
        Tokens targets(tokens.size(), -100);
        targets[8 + i] = text[9 + i];
        CHECK(trainer.forward({tokens, targets}).loss_sum == -static_cast<double>(answer.log_probs[i]));
      }
    }
  }
}

TEST_CASE("answer engine: end tokens and lengths end a text") {
  const ModelConfig config = config_of("llama");
  Writer writer(config, {4, 256});
  const Answer plain = writer.finish(writer.add({1, 2, 3}, 10, 1));
  CHECK(plain.finish == Finish::kLength);
  AnswerRequest request = writer.request({1, 2, 3}, 10, 1);
  request.end_tokens = {plain.tokens[4]};
  const std::uint64_t id = request.id;
  writer.engine.add(request);
  const Answer ended = writer.finish(id);
  const auto first = std::ranges::find(plain.tokens, plain.tokens[4]) - plain.tokens.begin();
  CHECK(std::ssize(ended.tokens) == first + 1);
  CHECK(ended.finish == Finish::kEndToken);
  const std::int64_t longest = writer.engine.max_length();
  CHECK(std::ssize(writer.finish(writer.add({1, 2, 3}, 1000, 1)).tokens) == longest - 3);
}

TEST_CASE("answer engine: a cancelled text is gone and its pages are free; refused requests are not there") {
  const ModelConfig config = config_of("llama");
  Writer writer(config, {4, 64});
  const std::uint64_t first = writer.add(Tokens(30, 1), 30, 1);
  writer.step();
  writer.engine.cancel(first);
  const std::uint64_t waiting = writer.add({3}, 5, 1);
  writer.engine.cancel(waiting);
  const std::uint64_t whole = writer.add(Tokens(60, 2), 3, 1);
  writer.finish(whole);
  CHECK(writer.answers[first].tokens.size() == 1);
  CHECK(writer.answers[waiting].tokens.empty());
  const auto code_with = [&](const auto& change) {
    AnswerRequest request = writer.request({1, 2}, 5, 1);
    change(request);
    return code_of([&] { writer.engine.add(request); });
  };
  CHECK(code_with([](AnswerRequest& r) { r.prompt.clear(); }) == "invalid_argument");
  CHECK(code_with([](AnswerRequest& r) { r.max_tokens = 0; }) == "invalid_argument");
  CHECK(code_with([](AnswerRequest& r) { r.draw.top_p = 2; }) == "invalid_argument");
  CHECK(code_with([&](AnswerRequest& r) { r.prompt[0] = static_cast<std::int32_t>(config.vocab_size); }) == "token_out_of_vocab");
  CHECK(code_with([](AnswerRequest& r) { r.prompt.assign(64, 1); }) == "prompt_too_long");
  CHECK(writer.engine.step().empty());
  CHECK(code_of([&] { AnswerEngine(config, DType::kBF16, Device{}, 1, best_cpu_isa(), {0, 64}); }) == "invalid_argument");
  CHECK(code_of([&] { AnswerEngine(config, DType::kBF16, Device{}, 1, best_cpu_isa(), {129, 64}); }) == "invalid_argument");
  AnswerEngine empty(config, DType::kBF16, Device{}, 1, best_cpu_isa(), {1, 64});
  CHECK(code_of([&] { empty.step(); }) == "invalid_argument");
}

DEVICE_TEST_CASE("answer engine: on a CUDA device an answer has the same bits alone and among strangers") {
  const ModelConfig config = config_of("llama");
  for (const Device device : cuda_devices_here()) {
    std::mt19937 random(4);
    const Tokens prompt = random_tokens(random, 33, config.vocab_size);
    Writer writer(config, {3, 256}, DType::kBF16, 1, device);
    const Answer expected = writer.finish(writer.add(prompt, 3, 5));
    writer.add(random_tokens(random, 20, config.vocab_size), 3, 1);
    const std::uint64_t id = writer.add(prompt, 3, 5);
    CHECK(writer.finish(id).same_text(expected));
    CHECK(writer.answers[id].cached_tokens == 32);
  }
}
