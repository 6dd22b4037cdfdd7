#include "kernels/moe/moe_router.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "core/error.h"
#include "test/kernels/golden_facts.h"
#include "test/kernels/moe/routes.h"

using namespace zerofleet;
using namespace zerofleet::test;

namespace {

std::vector<double> softmax_of(const std::vector<double>& logits) {
  double sum = 0;
  std::vector<double> probs;
  for (const double logit : logits) sum += probs.emplace_back(std::exp(logit));
  for (double& prob : probs) prob /= sum;
  return probs;
}

/// Σ dweights · weights + Σ dprobs · probs over tokens, with the experts held fixed.
double routed(const Table& logits, const Routes& routes, std::size_t k, std::span<const float> dweights,
              std::span<const float> dprobs, bool shares) {
  double total = 0;
  for (std::size_t row = 0; row < logits.size(); ++row) {
    const std::vector<double> probs = softmax_of(logits[row]);
    double sum = shares ? 0 : 1;
    for (std::size_t c = 0; shares && c < k; ++c) sum += probs[static_cast<std::size_t>(routes.experts[row * k + c])];
    for (std::size_t c = 0; c < k; ++c) {
      const double weight = probs[static_cast<std::size_t>(routes.experts[row * k + c])] / sum;
      total += static_cast<double>(dweights[row * k + c]) * weight;
    }
    for (std::size_t e = 0; e < dprobs.size(); ++e) total += static_cast<double>(dprobs[e]) * probs[e];
  }
  return total;
}

/// Number of unmasked tokens of each sequence, once per layer; or nothing.
std::vector<std::int32_t> lengths_of(const GoldenFacts& facts, std::int64_t layers) {
  std::vector<std::int32_t> lengths;
  if (!facts.words.contains("lengths")) return lengths;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (const double length : facts.numbers("lengths")) lengths.push_back(static_cast<std::int32_t>(length));
  }
  return lengths;
}

SharedValues<float> random_values(std::size_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  SharedValues<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

DEVICE_TEST_CASE("router, auxiliary loss and its gradient are those of transformers' Mixtral") {
  const std::vector<GoldenFacts> cases = read_golden_facts("load_balancing.txt");
  REQUIRE(cases.size() == 6);
  for (const GoldenFacts& facts : cases) {
    CAPTURE(facts.name);
    on_every_device([&](const Context& ctx, DType dtype) {
      if (dtype != DType::kF32) return;
      const std::vector<double> sizes = facts.numbers("sizes"), logits = facts.numbers("logits"),
                                experts = facts.numbers("experts"), weights = facts.numbers("weights"),
                                gradient = facts.numbers("gradient");
      const auto layers = static_cast<std::int64_t>(sizes[0]), tokens = static_cast<std::int64_t>(sizes[1]),
                 num_experts = static_cast<std::int64_t>(sizes[2]), k = static_cast<std::int64_t>(sizes[3]);
      const std::vector<std::int32_t> lengths = lengths_of(facts, layers);
      const SharedValues<std::int32_t> uploaded(lengths);
      const Indices counting{uploaded, uploaded.data()},
          of_layer = counting.first(lengths.size() / static_cast<std::size_t>(layers));
      const auto counted =
          lengths.empty() ? layers * tokens : std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
      HostMatrix all(DType::kF32, layers * tokens, num_experts), dlogits(DType::kF32, layers * tokens, num_experts);
      for (std::size_t i = 0; i < logits.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        all.set(at / num_experts, at % num_experts, static_cast<float>(logits[i]));
      }
      const Routes routes = routes_of(ctx, all, k);
      SharedValues<std::int64_t> choices(static_cast<std::size_t>(num_experts));  // layer by layer
      SharedValues<double> prob_sums(choices.size());
      for (std::int64_t layer = 0; layer < layers; ++layer) {
        const auto width = static_cast<std::size_t>(tokens * num_experts), pairs = static_cast<std::size_t>(tokens * k),
                   l = static_cast<std::size_t>(layer);
        add_router_load(ctx,
                        {std::span<const float>(routes.probs).subspan(l * width, width),
                         std::span<const std::int32_t>(routes.experts).subspan(l * pairs, pairs), of_layer},
                        {choices, prob_sums});
        synchronize(ctx);
      }
      const RouterLoad load{{choices.begin(), choices.end()}, {prob_sums.begin(), prob_sums.end()}, counted};
      for (std::size_t i = 0; i < experts.size(); ++i) {
        CHECK(routes.experts[i] == static_cast<std::int32_t>(experts[i]));
        CHECK(static_cast<double>(routes.weights[i]) == doctest::Approx(weights[i]).epsilon(1e-6));
      }
      CHECK(load_balancing_loss(load) == doctest::Approx(facts.numbers("loss")[0]).epsilon(1e-6));
      SharedValues<float> dprobs(choices.size()), none(routes.weights.size());
      load_balancing_gradient(ctx, choices, load.num_tokens, 1, dprobs);
      route_backward(ctx, {k, routes.probs, routes.experts, none, dprobs, dlogits.view(), counting});
      synchronize(ctx);
      for (std::size_t i = 0; i < gradient.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        CHECK(std::abs(dlogits.at(at / num_experts, at % num_experts) - gradient[i]) < 1e-7);
      }
    });
  }
}

DEVICE_TEST_CASE("router and its backward match float64, to the same bits with one, two and three threads") {
  on_every_device([](const Context& ctx, DType dtype) {
    for (const auto& [rows, num_experts, k, of_sum] :
         {std::array<std::int64_t, 4>{130, 8, 2, 1}, {3, 37, 5, 1}, {70, 3, 1, 1}, {9, 70, 40, 1}, {33, 8, 3, 0}}) {
      const bool shares = of_sum == 1;
      std::mt19937 random(107);
      const HostMatrix logits = HostMatrix::random(dtype, rows, num_experts, random, 3);
      const Routes routes = routes_of(ctx, logits, k, shares);
      const Table at = table_of(logits);
      Table weights(1), from_probs(1);
      const auto n = static_cast<std::size_t>(num_experts), chosen = static_cast<std::size_t>(k);
      for (std::size_t row = 0; row < at.size(); ++row) {
        const std::vector<double> probs = softmax_of(at[row]);
        double sum = 0;
        for (std::size_t c = 0; c < chosen; ++c) {
          const auto expert = static_cast<std::size_t>(routes.experts[row * chosen + c]);
          sum += weights[0].emplace_back(probs[expert]);
          int better = 0;  // of equal logits, the lower index is better
          for (std::size_t e = 0; e < n; ++e)
            better += at[row][e] > at[row][expert] || (at[row][e] == at[row][expert] && e < expert) ? 1 : 0;
          CHECK(better == static_cast<int>(c));
        }
        for (std::size_t c = 0; c < chosen; ++c) weights[0][row * chosen + c] /= shares ? sum : 1;
        from_probs[0].insert(from_probs[0].end(), probs.begin(), probs.end());
      }
      CHECK(relative_error(row_of(routes.weights), weights) < 2e-6);
      CHECK(relative_error(row_of(routes.probs), from_probs) < 2e-6);

      const SharedValues<float> dweights = random_values(routes.weights.size(), random),
                                dprobs = random_values(n, random);
      HostMatrix dlogits(dtype, rows, num_experts, 1);
      route_backward(ctx, {k, routes.probs, routes.experts, dweights, dprobs, dlogits.view(), {}, shares});
      synchronize(ctx);
      const auto f = [&](const Table& moved) { return routed(moved, routes, chosen, dweights, dprobs, shares); };
      CHECK(relative_error(dlogits, numeric_gradient(f, at)) < tolerance(dtype));
      if (ctx.device.kind != DeviceKind::kCpu) continue;
      for (const int threads : {1, 3}) {
        Machine machine(ctx.cpu_isa, threads);
        CHECK(routes_of(machine.ctx, logits, k, shares) == routes);
        HostMatrix again(dtype, rows, num_experts, 1);
        route_backward(machine.ctx, {k, routes.probs, routes.experts, dweights, dprobs, again.view(), {}, shares});
        CHECK(again == dlogits);
      }
    }
  });
}

DEVICE_TEST_CASE("router: of equal probabilities the lower index is chosen, and NaN still gives different experts") {
  on_every_device([](const Context& ctx, DType dtype) {
    HostMatrix logits(dtype, 3, 5);
    for (std::int64_t j = 0; j < 5; ++j) {
      logits.set(0, j, 1.0F);
      logits.set(1, j, j == 3 ? 2.0F : 1.0F);
      logits.set(2, j, j == 1 ? std::nanf("") : 1.0F);
    }
    const Routes routes = routes_of(ctx, logits, 2);
    CHECK(routes.experts[0] == 0);
    CHECK(routes.experts[1] == 1);
    CHECK(routes.experts[2] == 3);
    CHECK(routes.experts[3] == 0);
    CHECK(routes.experts[4] != routes.experts[5]);
    CHECK(std::isnan(routes.weights[4]));
  });
}

DEVICE_TEST_CASE("the load of routers is added up over layers, and its gradient is the CPU's to the bit") {
  for (const Device device : devices_here()) {
    DeviceMachine machine(device);
    constexpr std::int64_t kExperts = 37, kTokens = 300;
    std::mt19937 random(127);
    SharedValues<std::int64_t> choices(kExperts);
    SharedValues<double> probs(kExperts);
    RouterLoad expected{std::vector<std::int64_t>(kExperts), std::vector<double>(kExperts), 2 * kTokens};
    for (int layer = 0; layer < 2; ++layer) {
      const Routes routes = routes_of(machine.ctx, HostMatrix::random(DType::kF32, kTokens, kExperts, random), 2);
      add_router_load(machine.ctx, {routes.probs, routes.experts}, {choices, probs});
      synchronize(machine.ctx);
      for (const std::int32_t expert : routes.experts) ++expected.choices[static_cast<std::size_t>(expert)];
      for (std::size_t i = 0; i < routes.probs.size(); ++i)
        expected.probs[i % kExperts] += static_cast<double>(routes.probs[i]);
    }
    SharedValues<float> gradient(kExperts);
    load_balancing_gradient(machine.ctx, choices, expected.num_tokens, 0.3, gradient);
    synchronize(machine.ctx);
    for (std::size_t e = 0; e < kExperts; ++e) {
      CHECK(choices[e] == expected.choices[e]);
      CHECK(probs[e] == doctest::Approx(expected.probs[e]).epsilon(1e-13));
      const double count = static_cast<double>(expected.choices[e]), tokens = 2 * kTokens;
      CHECK(gradient[e] == static_cast<float>(0.3 * kExperts * count / tokens / tokens));
    }
    DeviceArray<float> without(machine.ctx, std::vector<float>(kExperts, 1.0F));
    load_balancing_gradient(machine.ctx, choices, 0, 0.3, without.span());
    CHECK(without.values() == std::vector<float>(kExperts));
  }
}

TEST_CASE("routers refuse shapes that do not fit") {
  Machine machine(best_cpu_isa(), 1);
  HostMatrix logits(DType::kF32, 2, 4);
  Routes routes(2, 4, 2);
  const auto with = [&](std::int64_t k) {
    route(machine.ctx, {logits.view(), k, routes.probs, routes.experts, routes.weights});
  };
  with(2);
  CHECK_THROWS_AS(with(3), Error);
  CHECK_THROWS_AS(with(0), Error);
  CHECK_THROWS_AS(routes_of(machine.ctx, logits, 5), Error);
  const std::vector<float> few(3);
  CHECK_THROWS_AS(route_backward(machine.ctx, {2, routes.probs, routes.experts, routes.weights, few, logits.view()}),
                  Error);
  std::vector<std::int64_t> choices(4);
  std::vector<double> probs(4);
  const std::vector<std::int32_t> three(3), long_ones{1, 2}, negative{-1, 1}, unknown{0, 1, 4, 0};
  const auto add = [&](const RouterChoices& chosen) { add_router_load(machine.ctx, chosen, {choices, probs}); };
  add({routes.probs, routes.experts});
  CHECK_THROWS_AS(add({few, routes.experts}), Error);
  CHECK_THROWS_AS(add({routes.probs, three}), Error);
  CHECK_THROWS_AS(add({routes.probs, unknown}), Error);
  CHECK_THROWS_AS(add({routes.probs, routes.experts, three}), Error);
  CHECK_THROWS_AS(add({routes.probs, routes.experts, long_ones}), Error);
  CHECK_THROWS_AS(add({routes.probs, routes.experts, negative}), Error);
  CHECK_THROWS_AS(add_router_load(machine.ctx, {routes.probs, routes.experts}, {{}, probs}), Error);
  std::vector<float> gradient(3);
  CHECK_THROWS_AS(load_balancing_gradient(machine.ctx, choices, 1, 1, gradient), Error);
  CHECK(load_balancing_loss({choices, probs, 0}) == 0.0);
}
