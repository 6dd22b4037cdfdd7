#include "model/transformer/decoder.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/attention/paged_attention.h"
#include "test/error_code.h"
#include "test/kernels/every_path.h"
#include "test/model/family_configs.h"
#include "test/model/random_model.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

constexpr std::int64_t kNumPages = 12;

/// A text in pages of its own.
struct Growing {
  Growing(std::span<const std::int32_t> text, std::int32_t first_page)
      : tokens(text), pages((text.size() + kPageTokens - 1) / kPageTokens) {
    std::iota(pages.rbegin(), pages.rend(), first_page);
  }
  SequenceRows take(std::int64_t count, bool needs_logits = true) {
    const SequenceRows rows{tokens.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
                            done,
                            pages,
                            needs_logits,
                            nullptr,
                            std::ssize(tokens)};
    done += count;
    return rows;
  }

  std::span<const std::int32_t> tokens;
  std::vector<std::int32_t> pages;
  std::int64_t done = 0;
};

Decoder decoder_of(const Context& ctx, const RandomModel& model, const ModelConfig& config, DType dtype,
                   std::span<const QuantizedMatrix* const> quantized = {}) {
  Decoder decoder(ctx, config, dtype, {64, 4, 64, kNumPages});
  decoder.bind_params(model.params(), quantized);
  decoder.params_changed();
  return decoder;
}

/// The trainer's loss of the token behind the first `count` of the text.
double trainer_loss(RandomModel& model, std::size_t count) {
  std::ranges::fill(model.targets, -100);
  model.targets[count - 1] = model.tokens[count];
  return model.model().forward({model.tokens, model.targets}).loss_sum;
}

}  // namespace

DEVICE_TEST_CASE("decoder: the log-probability of every token is the trainer's, in every family") {
  on_every_context([](const Context& ctx) {
    for (const auto& [name, config] : family_configs()) {
      CAPTURE(name);
      const bool is_cpu = ctx.device.kind == DeviceKind::kCpu;
      const std::int64_t length = is_cpu ? 40 : 14;
      RandomModel model(ctx, config, DType::kF32, {}, {1, length});
      Decoder decoder = decoder_of(ctx, model, config, DType::kF32);
      Growing text(model.tokens, 0);
      for (std::int64_t i = 1; i < length; i += is_cpu ? 1 : 6) {
        CAPTURE(i);
        const SequenceRows rows[] = {text.take(i - text.done)};
        const float log_prob = decoder.append(rows).front().log_prob(model.tokens[static_cast<std::size_t>(i)]);
        const double expected = trainer_loss(model, static_cast<std::size_t>(i));
        if (is_cpu)
          CHECK(-static_cast<double>(log_prob) == expected);
        else
          CHECK(-log_prob == doctest::Approx(expected).epsilon(1e-4));
      }
    }
  });
}

TEST_CASE("decoder: in 16 bits, too, log-probabilities have the bits of the trainer's losses") {
  for (const auto& [name, config] : family_configs()) {
    for (const DType dtype : {DType::kBF16, DType::kF16}) {
      CAPTURE(name + " " + name_of(dtype));
      Machine machine(best_cpu_isa(), 2);
      RandomModel model(machine.ctx, config, dtype, {}, {1, 64});
      Decoder decoder = decoder_of(machine.ctx, model, config, dtype);
      Growing text(model.tokens, 3);
      for (const std::int64_t count : {1, 32, 33, 63}) {
        const SequenceRows rows[] = {text.take(count - text.done)};
        const float log_prob = decoder.append(rows).front().log_prob(model.tokens[static_cast<std::size_t>(count)]);
        CHECK(-static_cast<double>(log_prob) == trainer_loss(model, static_cast<std::size_t>(count)));
      }
    }
  }
}

DEVICE_TEST_CASE("decoder: a text has the same bits alone and beside others, however it is cut") {
  on_every_context([](const Context& ctx) {
    for (const auto& [name, config] : family_configs()) {
      const bool is_cpu = ctx.device.kind == DeviceKind::kCpu;
      if (!is_cpu && name != "llama" && name != "mixtral") continue;
      CAPTURE(name);
      RandomModel model(ctx, config, DType::kBF16, {}, {2, 40});
      const std::span<const std::int32_t> all = model.tokens, text = all.first(40), other = all.last(40);
      const auto logits_of = [](const NextToken& next) {
        return std::vector<float>(next.logits.begin(), next.logits.end());
      };
      Decoder decoder = decoder_of(ctx, model, config, DType::kBF16);
      Growing alone(text, 0);
      const SequenceRows whole[] = {alone.take(40)};
      const std::vector<float> expected = logits_of(decoder.append(whole).front());
      CHECK(std::ranges::all_of(expected, [](float logit) { return std::isfinite(logit); }));
      Growing first(text, 4), second(other, 2), third(text, 0);
      for (const std::int64_t count : {1, 20, 19}) {
        const SequenceRows rows[] = {second.take(count == 20 ? 2 : 7, false), first.take(count),
                                     third.take(count == 1 ? 2 : count - (count == 19 ? 1 : 0))};
        const std::span<const NextToken> next = decoder.append(rows);
        CHECK(next.size() == 2);
        if (first.done == 40) {
          CHECK(logits_of(next[0]) == expected);
          CHECK(logits_of(next[1]) == expected);
          CHECK(next[0].log_sum == next[1].log_sum);
        }
      }
    }
  });
}

TEST_CASE("decoder: the same bits for any number of threads") {
  for (const auto& [name, config] : family_configs()) {
    CAPTURE(name);
    Machine machine(best_cpu_isa(), 1);
    RandomModel model(machine.ctx, config, DType::kBF16, {}, {1, 64});
    std::vector<float> expected;
    for (const int threads : {1, 2, 3}) {
      Machine other(best_cpu_isa(), threads);
      Decoder decoder = decoder_of(other.ctx, model, config, DType::kBF16);
      Growing text(model.tokens, 0);
      const SequenceRows rows[] = {text.take(64)};
      const std::span<const float> logits = decoder.append(rows).front().logits;
      if (threads == 1) expected.assign(logits.begin(), logits.end());
      CHECK(std::ranges::equal(logits, expected));
    }
  }
}

TEST_CASE("decoder: invalid calls are refused by code, and append nothing") {
  Machine machine(best_cpu_isa(), 1);
  const ModelConfig config = config_of("gpt2");
  RandomModel model(machine.ctx, config, DType::kBF16, {}, {1, 64});
  const auto code_of_limits = [&](const Decoder::Limits& limits) {
    return code_of([&] { Decoder(machine.ctx, config, DType::kBF16, limits); });
  };
  CHECK(code_of_limits({64, 4, 0, 1}) == "invalid_argument");
  CHECK(code_of_limits({64, 4, 65, 1}) == "invalid_argument");
  CHECK(code_of_limits({0, 4, 64, 1}) == "invalid_argument");
  CHECK(code_of_limits({64, 0, 64, 1}) == "invalid_argument");
  CHECK(code_of_limits({64, 4, 64, 0}) == "invalid_argument");
  Decoder unbound(machine.ctx, config, DType::kBF16, {64, 4, 64, kNumPages});
  const std::vector<std::int32_t> pages{0, 1, 2, 3}, outside{kNumPages}, tokens(65, 1),
      unknown{1, static_cast<std::int32_t>(config.vocab_size)};
  const auto code_of_rows = [&](Decoder& decoder, const SequenceRows& text) {
    const SequenceRows rows[] = {text};
    return code_of([&] { decoder.append(rows); });
  };
  const std::span<const std::int32_t> all = tokens;
  CHECK(code_of_rows(unbound, {all.first(2), 0, pages, true}) == "invalid_argument");
  Decoder decoder = decoder_of(machine.ctx, model, config, DType::kBF16);
  CHECK(code_of_rows(decoder, {all, 0, pages, true}) == "invalid_argument");
  CHECK(code_of_rows(decoder, {all.first(0), 0, pages, true}) == "invalid_argument");
  CHECK(code_of_rows(decoder, {all.first(2), 63, pages, true}) == "invalid_argument");
  CHECK(code_of_rows(decoder, {all.first(33), 0, std::span(pages).first(1), true}) == "invalid_argument");
  CHECK(code_of_rows(decoder, {all.first(2), 0, outside, true}) == "invalid_argument");
  CHECK(code_of_rows(decoder, {unknown, 0, pages, true}) == "token_out_of_vocab");
  const std::vector<SequenceRows> many(5, {all.first(2), 0, pages, true});
  CHECK(code_of([&] { decoder.append(many); }) == "invalid_argument");
  CHECK(decoder.append(std::span(many).first(1)).front().logits.size() == static_cast<std::size_t>(config.vocab_size));
}
