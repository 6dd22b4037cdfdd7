#include "serve/token_draw.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "test/kernels/test_machine.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

// Probabilities 0.4, 0.3, 0.2, 0.1 of tokens 2, 0, 3, 1.
const std::vector<float> kLogits{std::log(0.3F), std::log(0.1F), std::log(0.4F), std::log(0.2F)};
constexpr int kDraws = 4000;

/// Frequencies of each token in draws at positions 0, 1, …, as shares of all.
std::vector<double> shares(const DrawOptions& options) {
  std::vector<double> counts(kLogits.size());
  for (std::uint32_t position = 0; position < kDraws; ++position) {
    counts[static_cast<std::size_t>(draw_token(best_cpu_isa(), kLogits, options, position))] += 1.0 / kDraws;
  }
  return counts;
}

void check_shares(const DrawOptions& options, const std::vector<double>& expected) {
  const auto found = shares(options);
  for (std::size_t token = 0; token < expected.size(); ++token) {
    CAPTURE(token);
    CHECK(std::abs(found[token] - expected[token]) < 0.02);
    CHECK((found[token] == 0) == (expected[token] == 0));
  }
}

}  // namespace

TEST_CASE("tokens are drawn with their probabilities") { check_shares({}, {0.3, 0.1, 0.4, 0.2}); }

TEST_CASE("temperature sharpens and flattens; 0 takes the most likely token") {
  DrawOptions options;
  options.temperature = 0.5;  // squares of the probabilities, 0.16 + 0.09 + 0.04 + 0.01 = 0.3
  check_shares(options, {0.3, 0.0333, 0.5333, 0.1333});
  options.temperature = 0;
  check_shares(options, {0, 0, 1, 0});
}

TEST_CASE("top_k keeps the k most likely tokens") {
  DrawOptions options;
  options.top_k = 2;
  check_shares(options, {3.0 / 7, 0, 4.0 / 7, 0});
  options.top_k = 100;
  check_shares(options, {0.3, 0.1, 0.4, 0.2});
}

TEST_CASE("top_p keeps the fewest tokens that reach it, of those that top_k kept") {
  DrawOptions options;
  options.top_p = 0.65;
  check_shares(options, {3.0 / 7, 0, 4.0 / 7, 0});
  options.top_p = 0.01;
  check_shares(options, {0, 0, 1, 0});
  options.top_k = 3;  // 4/9, 3/9, 2/9
  options.top_p = 0.75;
  check_shares(options, {3.0 / 7, 0, 4.0 / 7, 0});
}

TEST_CASE("logits that are not numbers give a token, whatever the options") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  for (const std::vector<float>& logits : {std::vector{none, none, none}, std::vector{1.0F, none, 0.0F}}) {
    for (const double temperature : {0.0, 1.0}) {
      for (const std::int64_t top_k : {0, 2}) {
        for (const double top_p : {1.0, 0.9}) {
          DrawOptions options;
          options.temperature = temperature;
          options.top_k = top_k;
          options.top_p = top_p;
          for (const CpuIsa isa : available_isas()) {
            const std::int32_t token = draw_token(isa, logits, options, 0);
            CHECK(token >= 0);
            CHECK(token < 3);
          }
        }
      }
    }
  }
}

TEST_CASE("a nucleus of many tokens is found in an unordered vocabulary") {
  constexpr int kTokens = 5000;
  std::vector<float> logits(kTokens);
  for (int i = 0; i < kTokens; ++i)
    logits[static_cast<std::size_t>(i * 7 % kTokens)] = i < 1000 ? 0.0F : -20.0F;  // 1000 equal ones
  DrawOptions options;
  options.top_p = 0.5;
  std::set<std::int32_t> drawn;
  for (std::uint32_t position = 0; position < kDraws; ++position)
    drawn.insert(draw_token(best_cpu_isa(), logits, options, position));
  std::vector<std::int32_t> likely;
  for (std::int32_t token = 0; token < kTokens; ++token) {
    if (logits[static_cast<std::size_t>(token)] == 0) likely.push_back(token);
  }
  CHECK(drawn.size() > 480);
  CHECK(drawn.size() <= 501);
  CHECK(*drawn.rbegin() <= likely[500]);
  CHECK(most_likely(logits, 3) == std::vector<std::int32_t>(likely.begin(), likely.begin() + 3));
}

TEST_CASE("only tokens that the tokenizer knows are drawn") {
  DrawOptions options;
  options.num_tokens = 2;
  check_shares(options, {0.75, 0.25, 0, 0});
  options.temperature = 0;
  check_shares(options, {1, 0, 0, 0});
}

TEST_CASE("penalties count drawn tokens, and biases add") {
  DrawOptions options;
  CHECK(!adjusts_logits(options));
  CHECK(adjusted_logits(kLogits, options, std::vector<std::int32_t>{1, 2}, {}) == kLogits);
  options.presence_penalty = 0.5;
  options.frequency_penalty = 0.25;
  options.logit_bias = {{3, 2.0}, {1, -100.0}};
  CHECK(adjusts_logits(options));
  const std::vector<std::int32_t> drawn{2, 0, 2, 3, 2};
  CHECK(adjusted_logits(std::vector<float>{1, 2, 3, 4}, options, drawn, {}) ==
        std::vector<float>{0.25F, -98.0F, 1.75F, 5.25F});
}

TEST_CASE("tokens that a mask does not allow are never drawn") {
  DrawOptions options;
  const TokenMask mask{0b1001};
  const std::vector<float> masked = adjusted_logits(std::vector<float>{1, 9, 8, 0.5F}, options, {}, mask);
  for (const double top_p : {1.0, 0.9}) {
    for (const std::int64_t top_k : {0, 3}) {
      options.top_p = top_p;
      options.top_k = top_k;
      for (const CpuIsa isa : {CpuIsa::kGeneric, best_cpu_isa()}) {
        std::set<std::int32_t> drawn;
        for (std::uint32_t position = 0; position < 200; ++position)
          drawn.insert(draw_token(isa, masked, options, position));
        CHECK(drawn == std::set<std::int32_t>{0, 3});
      }
    }
  }
  options.temperature = 0;
  CHECK(draw_token(best_cpu_isa(), masked, options, 0) == 0);
}

TEST_CASE("a draw depends on seed and position; ties go to the lower token") {
  DrawOptions options, other;
  other.seed = 2;
  int differences = 0;
  for (std::uint32_t position = 0; position < 100; ++position) {
    CHECK(draw_token(best_cpu_isa(), kLogits, options, position) ==
          draw_token(best_cpu_isa(), kLogits, options, position));
    differences +=
        draw_token(best_cpu_isa(), kLogits, options, position) != draw_token(best_cpu_isa(), kLogits, other, position)
            ? 1
            : 0;
  }
  CHECK(differences > 20);
  options.top_k = 1;
  CHECK(draw_token(best_cpu_isa(), std::vector<float>{1, 3, 3}, options, 0) == 1);
}

TEST_CASE("options of a draw that cannot be are refused by name") {
  const auto message_of = [](const std::function<void(DrawOptions&)>& change) -> std::string {
    DrawOptions options;
    change(options);
    try {
      validate(options);
    } catch (const Error& error) {
      CHECK(error.code() == "invalid_argument");
      return error.what();
    }
    return "";
  };
  CHECK(message_of([](DrawOptions&) {}).empty());
  CHECK(message_of([](DrawOptions& o) { o.temperature = -1; }).starts_with("temperature"));
  CHECK(message_of([](DrawOptions& o) { o.temperature = NAN; }).starts_with("temperature"));
  CHECK(message_of([](DrawOptions& o) { o.top_p = 0; }).starts_with("top_p"));
  CHECK(message_of([](DrawOptions& o) { o.top_p = 1.5; }).starts_with("top_p"));
  CHECK(message_of([](DrawOptions& o) { o.top_k = -1; }).starts_with("top_k"));
  CHECK(message_of([](DrawOptions& o) { o.presence_penalty = NAN; }).starts_with("penalties"));
  CHECK(message_of([](DrawOptions& o) { o.logit_bias = {{0, INFINITY}}; }).starts_with("penalties"));
  CHECK(message_of([](DrawOptions& o) { o.num_tokens = -1; }).starts_with("num_tokens"));
}
