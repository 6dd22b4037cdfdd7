// Greedy answers against generate() of transformers, across the length at which rotary frequencies change.
#include <doctest/doctest.h>

#include "test/golden/golden_file.h"
#include "test/serve/engine_driver.h"

using namespace zerofleet;
using namespace zerofleet::test;

TEST_CASE("answer engine: a greedy answer that grows beyond the original length is that of transformers") {
  const GoldenFile golden("phi3_longrope");
  const ModelConfig config = golden.model_config();
  const std::vector<std::int32_t> expected = golden.integers("generated");
  const std::vector<float> log_probs = golden.floats("generated_log_probs");
  constexpr std::size_t kPrompt = 10;
  REQUIRE(std::ssize(expected) > config.rope_scaling.original_max_position_embeddings + 1);
  AnswerEngine engine(config, DType::kF32, Device{}, 2, best_cpu_isa(), {1, 64});
  const std::vector<ParamSpec> specs = param_specs(config);
  for (std::size_t param = 0; param < specs.size(); ++param) {
    const std::vector<float> values = golden.floats("param." + specs[param].name);
    engine.set_param(param, 0, DType::kF32, std::as_bytes(std::span(values)));
  }
  SequenceRequest request;
  request.prompt.assign(expected.begin(), expected.begin() + kPrompt);
  request.max_tokens = std::ssize(expected) - static_cast<std::int64_t>(kPrompt);
  request.draw.temperature = 0;
  engine.add(request);
  Tokens tokens = request.prompt;
  while (tokens.size() < expected.size()) {
    for (const DrawnToken& token : engine.step()) {
      CHECK(token.drawn.log_prob == doctest::Approx(log_probs[tokens.size() - kPrompt]).epsilon(1e-4));
      tokens.push_back(token.drawn.token);
    }
  }
  CHECK(tokens == expected);
}
