#include "model/transformer/decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "test/error_code.h"
#include "test/kernels/every_path.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

using Logits = std::vector<float>;

Logits append(Decoder& decoder, std::span<const std::int32_t> tokens, std::int64_t vocab) {
  Logits logits(static_cast<std::size_t>(vocab));
  decoder.append(tokens, logits);
  return logits;
}

/// -log p(target) after each token but the last, from a decoder that takes one token at a time.
std::vector<double> losses_of(Decoder& decoder, std::span<const std::int32_t> tokens, std::int64_t vocab) {
  std::vector<double> losses;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    const Logits logits = append(decoder, tokens.subspan(i, 1), vocab);
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
    losses.push_back(std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(tokens[i + 1])]));
  }
  return losses;
}

}  // namespace

DEVICE_TEST_CASE("decoder: its logits after every token equal those of the whole forward, in every family") {
  on_every_context([](const Context& ctx) {
    for (const auto& [name, config] : family_configs()) {
      CAPTURE(name);
      const bool is_cpu = ctx.device.kind == DeviceKind::kCpu;
      const std::int64_t length = is_cpu ? 40 : 14;
      RandomModel model(ctx, config, DType::kF32, {}, {1, length});
      Decoder decoder(ctx, config, DType::kF32, length);
      decoder.bind_params(model.params());
      decoder.params_changed();
      const std::vector<double> losses = losses_of(decoder, model.tokens, config.vocab_size);
      for (std::size_t i = 0; i < losses.size(); i += is_cpu ? 1 : 6) {
        CAPTURE(i);
        std::ranges::fill(model.targets, -100);
        model.targets[i] = model.tokens[i + 1];
        const double expected = model.model().forward({model.tokens, model.targets}).loss_sum;
        CHECK(losses[i] == doctest::Approx(expected).epsilon(1e-4));
      }
    }
  });
}

TEST_CASE("decoder: the same bits however a text is cut and for any number of threads; clear() begins anew") {
  for (const auto& [name, config] : family_configs()) {
    for (const DType dtype : kAllDTypes) {
      CAPTURE(name);
      Machine machine(best_cpu_isa(), 1);
      RandomModel model(machine.ctx, config, dtype, {}, {1, 64});
      const std::span<const std::int32_t> text = model.tokens;
      Decoder whole(machine.ctx, config, dtype, 64);
      whole.bind_params(model.params());
      whole.params_changed();
      const Logits expected = append(whole, text, config.vocab_size);
      CHECK(std::ranges::all_of(expected, [](float logit) { return std::isfinite(logit); }));
      for (const int threads : {1, 2, 3}) {
        Machine other(best_cpu_isa(), threads);
        Decoder decoder(other.ctx, config, dtype, 64);
        decoder.bind_params(model.params());
        decoder.params_changed();
        append(decoder, text.first(1), config.vocab_size);
        append(decoder, text.subspan(1, 30), config.vocab_size);
        CHECK(decoder.length() == 31);
        CHECK(append(decoder, text.subspan(31), config.vocab_size) == expected);
        decoder.clear();
        CHECK(append(decoder, text, config.vocab_size) == expected);
      }
    }
  }
}

TEST_CASE("decoder: invalid calls are refused by code") {
  Machine machine(best_cpu_isa(), 1);
  const ModelConfig config = family_configs().front().config;
  RandomModel model(machine.ctx, config, DType::kBF16);
  CHECK(code_of([&] { Decoder(machine.ctx, config, DType::kBF16, 0); }) == "invalid_argument");
  CHECK(code_of([&] { Decoder(machine.ctx, config, DType::kBF16, 65); }) == "invalid_argument");
  Decoder decoder(machine.ctx, config, DType::kBF16, 8);
  const std::vector<std::int32_t> tokens{1, 2, 3, 4, 5, 6};
  CHECK(code_of([&] { append(decoder, tokens, config.vocab_size); }) == "invalid_argument");
  decoder.bind_params(model.params());
  decoder.params_changed();
  CHECK(code_of([&] { append(decoder, tokens, config.vocab_size - 1); }) == "invalid_argument");
  CHECK(code_of([&] { append(decoder, {}, config.vocab_size); }) == "invalid_argument");
  append(decoder, tokens, config.vocab_size);
  CHECK(code_of([&] { append(decoder, tokens, config.vocab_size); }) == "invalid_argument");
  CHECK(decoder.length() == 0);
  const std::vector<std::int32_t> unknown{1, static_cast<std::int32_t>(config.vocab_size)};
  CHECK(code_of([&] { append(decoder, unknown, config.vocab_size); }) == "token_out_of_vocab");
  CHECK(decoder.length() == 0);
  CHECK(append(decoder, tokens, config.vocab_size).size() == static_cast<std::size_t>(config.vocab_size));
}
