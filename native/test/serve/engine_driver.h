#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/dtype.h"
#include "kernels/flat/cast.h"
#include "model/config/param_table.h"
#include "model/transformer/transformer.h"
#include "serve/answer_engine.h"
#include "test/kernels/every_path.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"

namespace zerofleet::test {

using Tokens = std::vector<std::int32_t>;

struct Answer {
  Tokens tokens;
  std::vector<float> log_probs;
  std::vector<Tokens> top;
  std::int64_t cached_tokens = 0;
  Finish finish = Finish::kNone;
  bool same_bits(const Answer& other) const {
    return tokens == other.tokens && log_probs == other.log_probs && top == other.top && finish == other.finish;
  }
};

inline std::vector<std::vector<float>> weights_of(const ModelConfig& config) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, 0.3F);
  std::vector<std::vector<float>> weights;
  for (const ParamSpec& spec : param_specs(config)) {
    weights.emplace_back(static_cast<std::size_t>(spec.numel()));
    for (float& value : weights.back()) value = normal(random);
  }
  return weights;
}

/// An engine with random weights. Collects the answers.
struct EngineDriver {
  EngineDriver(const ModelConfig& config, const AnswerEngine::Limits& limits, DType dtype = DType::kBF16,
               int threads = 2, Device device = {}, CpuIsa cpu_isa = best_cpu_isa())
      : engine(config, dtype, device, threads, cpu_isa, limits) {
    const auto weights = weights_of(config);
    for (std::size_t param = 0; param < weights.size(); ++param)
      engine.set_param(param, 0, DType::kF32, std::as_bytes(std::span(weights[param])));
  }

  SequenceRequest request(Tokens prompt, std::int64_t max_tokens, std::uint64_t seed) {
    SequenceRequest request;
    request.id = next_id++;
    request.prompt = std::move(prompt);
    request.max_tokens = max_tokens;
    request.top_log_probs = 2;
    request.draw.seed = seed;
    return request;
  }
  std::uint64_t add(Tokens prompt, std::int64_t max_tokens, std::uint64_t seed) {
    SequenceRequest added = request(std::move(prompt), max_tokens, seed);
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

inline Tokens random_tokens(std::mt19937& random, std::size_t count, std::int64_t vocab) {
  Tokens tokens(count);
  for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random() % static_cast<std::uint64_t>(vocab));
  return tokens;
}

/// Checks log-probabilities against the trainer's losses of the same tokens, which must have the same bits.
inline void check_losses(const ModelConfig& config, DType dtype, const std::vector<std::vector<float>>& weights,
                         const Tokens& prompt, const Answer& answer, CpuIsa cpu_isa = best_cpu_isa()) {
  Tokens sequence = prompt;
  sequence.insert(sequence.end(), answer.tokens.begin(), answer.tokens.end());
  Machine machine(cpu_isa, 2);
  Transformer trainer(machine.ctx, config, dtype, 1, std::ssize(sequence) - 1);
  std::vector<SharedBytes> params;
  std::vector<const std::byte*> pointers;
  for (const auto& values : weights) {
    params.emplace_back(values.size() * size_of(dtype));
    cast_from_f32(machine.ctx, values, dtype, {params.back().data(), params.back().size()});
    pointers.push_back(params.back().data());
  }
  trainer.bind_params(pointers);
  trainer.params_changed();
  const Tokens tokens(sequence.begin(), sequence.end() - 1);
  for (std::size_t i = 0; i < answer.tokens.size(); i += 7) {
    Tokens targets(tokens.size(), -100);
    targets[prompt.size() - 1 + i] = sequence[prompt.size() + i];
    CHECK(trainer.forward({tokens, targets}).loss_sum == -static_cast<double>(answer.log_probs[i]));
  }
}

}  // namespace zerofleet::test
