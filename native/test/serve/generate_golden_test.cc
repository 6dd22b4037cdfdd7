// Greedy answers of every family against generate() of transformers, also across the length at which rotary frequencies
// change.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "test/model/every_golden.h"
#include "test/serve/engine_driver.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::size_t kPrompt = 10;

void check_answer(const GoldenFile& golden, Device device, CpuIsa isa) {
  const ModelConfig config = golden.model_config();
  const std::vector<std::int32_t> expected = golden.integers("generated");
  const std::vector<float> log_probs = golden.floats("generated_log_probs");
  AnswerEngine engine(config, DType::kF32, device, 2, isa, {1, 64});
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

}  // namespace

DEVICE_TEST_CASE("families: greedy answers are those of transformers") {
  for (const std::string& name : family_files()) {
    const GoldenFile golden(name);
    for (const Device device : cuda_devices_here()) {
      CAPTURE(name + " on " + to_string(device));
      check_answer(golden, device, best_cpu_isa());
    }
    if (!cpu_is_tested()) continue;
    for (const CpuIsa isa : available_isas()) {
      CAPTURE(name + " on " + name_of(isa));
      check_answer(golden, Device{}, isa);
    }
  }
}

TEST_CASE("the answer of the golden file for longrope crosses the original length") {
  const GoldenFile golden("phi3_longrope");
  CHECK(std::ssize(golden.integers("generated")) >
        golden.model_config().rope_scaling.original_max_position_embeddings + 1);
}
